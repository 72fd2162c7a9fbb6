//! A headless Chromium, driven over its debugging pipe: messages in JSON, a zero byte behind each.
//! What the protocol's methods and events mean is documented with the browser (Chrome DevTools
//! Protocol).

use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use serde_json::{Value, json};

/// Nothing that is asked of the browser takes longer, even on a busy machine.
const PATIENCE: Duration = Duration::from_secs(120);

/// What the program is called on Debian and elsewhere.
const NAMES: [&str; 3] = ["chromium", "chromium-browser", "google-chrome"];

/// The browser's program, if it is installed.
pub fn find() -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let places = std::env::split_paths(&path);
    let mut candidates = places.flat_map(|place| NAMES.map(|name| place.join(name)));
    candidates.find(|candidate| candidate.is_file())
}

/// A running browser with one open page.
pub struct Browser {
    process: Child,
    commands: File,
    messages: Receiver<Value>,
    /// Events that came since they were last taken.
    events: Vec<Value>,
    session: Option<String>,
    last_id: u64,
    // The profile; removed when the browser is gone.
    _home: tempfile::TempDir,
}

impl Browser {
    /// Starts the browser without any way to the network, and opens an empty page.
    pub fn start(program: &Path) -> Browser {
        let home = tempfile::tempdir().expect("a directory for the profile");
        let pipes = ["commands", "messages"].map(|name| home.path().join(name));
        let made = Command::new("mkfifo").args(&pipes).status();
        assert!(made.expect("mkfifo starts").success(), "mkfifo failed");
        // The browser reads commands from descriptor 3 and writes messages to 4.
        let process = Command::new("sh")
            .args(["-c", "exec \"$0\" \"$@\" 3<\"$COMMANDS\" 4>\"$MESSAGES\""])
            .arg(program)
            .args([
                "--headless",
                "--no-sandbox",
                "--disable-gpu",
                "--disable-dev-shm-usage",
                "--no-first-run",
                "--hide-scrollbars",
                "--host-resolver-rules=MAP * ~NOTFOUND",
                "--remote-debugging-pipe",
            ])
            .arg(format!("--user-data-dir={}", home.path().join("profile").display()))
            .env("COMMANDS", &pipes[0])
            .env("MESSAGES", &pipes[1])
            .env("HOME", home.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("sh starts");
        // Each of these waits for the shell to open the other end, in the same order.
        let commands = OpenOptions::new().write(true).open(&pipes[0]).expect("the commands' pipe");
        let replies = File::open(&pipes[1]).expect("the messages' pipe");
        let mut browser = Browser {
            process,
            commands,
            messages: reading(replies),
            events: Vec::new(),
            session: None,
            last_id: 0,
            _home: home,
        };
        browser.open_a_page();
        browser
    }

    fn open_a_page(&mut self) {
        let target = self.call("Target.createTarget", json!({ "url": "about:blank" }));
        let attached = self.call(
            "Target.attachToTarget",
            json!({ "targetId": target["targetId"], "flatten": true }),
        );
        self.session = attached["sessionId"].as_str().map(str::to_string);
        for domain in ["Page", "Runtime", "Log", "Network"] {
            self.call(&format!("{domain}.enable"), json!({}));
        }
        let offline = json!({ "offline": true, "latency": 0, "downloadThroughput": 0, "uploadThroughput": 0 });
        self.call("Network.emulateNetworkConditions", offline);
    }

    /// Calls a method of the protocol and gives its result.
    pub fn call(&mut self, method: &str, params: Value) -> Value {
        self.last_id += 1;
        let id = self.last_id;
        let mut message = json!({ "id": id, "method": method, "params": params });
        if let Some(session) = &self.session {
            message["sessionId"] = session.as_str().into();
        }
        let mut bytes = message.to_string().into_bytes();
        bytes.push(0);
        self.commands.write_all(&bytes).expect("the browser takes commands");
        loop {
            let message = self.next(method);
            if message["id"].as_u64() != Some(id) {
                self.events.push(message);
                continue;
            }
            assert!(message["error"].is_null(), "{method}: {}", message["error"]);
            return message["result"].clone();
        }
    }

    fn next(&mut self, waiting_for: &str) -> Value {
        match self.messages.recv_timeout(PATIENCE) {
            Ok(message) => message,
            Err(error) => panic!("the browser did not answer to {waiting_for}: {error}"),
        }
    }

    /// Loads a page of the machine and waits until it is there.
    pub fn load(&mut self, page: &Path) {
        self.call("Page.navigate", json!({ "url": format!("file://{}", page.display()) }));
        let loaded = |event: &Value| event["method"] == "Page.loadEventFired";
        while !self.events.iter().any(loaded) {
            let event = self.next("the end of loading");
            self.events.push(event);
        }
    }

    /// The value of an expression of JavaScript in the page.
    pub fn evaluate(&mut self, expression: &str) -> Value {
        let answer = self.call(
            "Runtime.evaluate",
            json!({ "expression": expression, "returnByValue": true, "awaitPromise": true }),
        );
        assert!(answer["exceptionDetails"].is_null(), "{answer}");
        answer["result"]["value"].clone()
    }

    /// The size of the screen in pixels.
    pub fn resize(&mut self, width: u32, height: u32) {
        let size =
            json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": false });
        self.call("Emulation.setDeviceMetricsOverride", size);
    }

    /// Light or dark, screen or paper.
    pub fn show_as(&mut self, medium: &str, scheme: &str) {
        let scheme = json!([{ "name": "prefers-color-scheme", "value": scheme }]);
        self.call("Emulation.setEmulatedMedia", json!({ "media": medium, "features": scheme }));
    }

    /// Presses the tabulator key.
    pub fn press_tab(&mut self) {
        for kind in ["rawKeyDown", "keyUp"] {
            let key =
                json!({ "type": kind, "key": "Tab", "code": "Tab", "windowsVirtualKeyCode": 9 });
            self.call("Input.dispatchKeyEvent", key);
        }
    }

    /// What happened since this was last asked.
    pub fn take_events(&mut self) -> Vec<Value> {
        // An answer behind which all events of before have come.
        self.evaluate("1");
        std::mem::take(&mut self.events)
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Reads messages on a thread, so that a browser that hangs fails the test and does not hang it.
fn reading(replies: File) -> Receiver<Value> {
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        for message in BufReader::new(replies).split(0) {
            let Ok(bytes) = message else { break };
            let Ok(message) = serde_json::from_slice(&bytes) else {
                break;
            };
            if sender.send(message).is_err() {
                break;
            }
        }
    });
    receiver
}
