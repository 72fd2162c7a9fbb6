"""The real programs of `benches/enough.py`: each prepares its files, works for a while and tells how long its storage made it wait.

`run` returns a dict: `waits_s`, the waits that docs/how-to/fast-enough.md has limits for, and `more`, a few words for the table.
"""

import array
import fcntl
import glob
import json
import os
import random
import re
import shutil
import signal
import socket
import sqlite3
import subprocess
import termios
import threading
import time
import urllib.request

def run(*words, **more):
    return subprocess.run(words, check=True, stdout=subprocess.PIPE, text=True, **more).stdout.strip()


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def wait_until(is_so, seconds=60):
    end = time.monotonic() + seconds
    while not is_so():
        if time.monotonic() > end:
            raise TimeoutError
        time.sleep(0.1)


def quantile(values, share):
    """The nearest rank."""
    values = sorted(values)
    return values[min(len(values) - 1, max(0, -int(-share * len(values) // 1) - 1))]


def traced(log):
    """Calls in a log of `strace -f -y -ttt -T`: time of the beginning, path, seconds."""
    begun, calls = {}, []
    for line in open(log):
        if found := re.match(r"(\d+) +([\d.]+) \w+\(\d+<(.*?)>.*?(?:<([\d.]+)>)?$", line):
            pid, at, path, took = found.groups()
            if took is None:
                begun[pid] = (float(at), path)
            else:
                calls.append((float(at), path, float(took)))
        elif found := re.match(r"(\d+) +[\d.]+ <\.\.\. .* resumed>.*<([\d.]+)>$", line):
            if found[1] in begun:
                calls.append((*begun.pop(found[1]), float(found[2])))
    return calls


class Program:
    # Seconds of `rubus enough`.
    rubus_s = 40

    # The waits that are good, at the edge and too long even once.
    limits_ms = (60, 1000, 2000)

    @property
    def calm_ms(self):
        """A wait of a disk that is never slow, from which on the machine is to blame."""
        return self.limits_ms[2] / 2

    def end(self):
        pass


class Etcd(Program):
    """etcd with `etcdctl check perf --load=s`: 50 clients, 150 writes per second for a minute. The waits are its fdatasyncs of the
    log, by strace; beside them its own histogram."""

    name = "etcd"
    limits_ms = (10, 20, 1000)

    def __init__(self, options, scratch):
        self.etcd, self.ctl, self.scratch = options["etcd"], options["etcdctl"], scratch

    def prepare(self, place):
        self.url = f"http://127.0.0.1:{free_port()}"
        peers = f"http://127.0.0.1:{free_port()}"
        self.trace = f"{self.scratch}/etcd.trace"
        self.log = open(f"{self.scratch}/etcd.log", "w")
        self.server = subprocess.Popen(
            ["strace", "-f", "--seccomp-bpf", "-qq", "-y", "-ttt", "-T", "-e", "trace=fdatasync", "-o", self.trace]
            + [self.etcd, "--data-dir", f"{place}/etcd", "--listen-client-urls", self.url]
            + ["--advertise-client-urls", self.url, "--listen-peer-urls", peers]
            + ["--initial-advertise-peer-urls", peers, "--initial-cluster", f"default={peers}"],
            stderr=self.log,
            stdout=self.log,
        )
        wait_until(lambda: "true" in self.get("/health"))

    def get(self, path):
        try:
            return urllib.request.urlopen(self.url + path, timeout=60).read().decode()
        except OSError:
            return ""

    def histogram(self):
        found = re.findall(r'etcd_disk_wal_fsync_duration_seconds_bucket{le="([^"]+)"} (\d+)', self.get("/metrics"))
        return [(float(limit.replace("+Inf", "inf")), int(count)) for limit, count in found]

    def run(self, place, seconds):
        before, began = self.histogram(), time.time()
        check = subprocess.run(
            [self.ctl, "--endpoints", self.url, "--command-timeout=120s", "check", "perf", "--load=s"],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        ended = time.time()
        after = self.histogram()
        calls = traced(self.trace)
        waits = [took for at, path, took in calls if path.endswith(".wal") and began <= at <= ended]
        counts = [(limit, n - m) for (limit, n), (_, m) in zip(after, before)]
        total = counts[-1][1] if counts else 0
        # The 99th percentile lies below this end of a bucket.
        below = next((limit for limit, count in counts if count >= 0.99 * total), None)
        slow = open(f"{self.scratch}/etcd.log").read().count("slow fdatasync")
        verdicts = re.findall(r"(PASS|FAIL)(?:: (.*))?", check.stdout)
        return {
            "waits_s": waits,
            "more": f"`check perf`: {'PASS' if check.returncode == 0 else 'FAIL'}; its histogram: p99 below {below * 1e3 if below else 0:.0f} ms"
            + (f"; {slow} × \"slow fdatasync\"" if slow else ""),
            "check": verdicts,
        }

    def end(self):
        # strace does not pass a signal on.
        for child in open(f"/proc/{self.server.pid}/task/{self.server.pid}/children").read().split():
            os.kill(int(child), signal.SIGTERM)
        self.server.wait()


class Git(Program):
    """A bare repository of 48 MiB which is repacked over and over, and receives pushes of a commit with 100 new files each. The
    waits are what pushes take longer than they do while the disk is not slow."""

    name = "git-server"
    limits_ms = (1000, 10_000, 10_000)
    PUSHES = 400

    def __init__(self, options, scratch):
        self.client = f"{scratch}/client.git"
        dice = random.Random(1)
        run("git", "init", "-q", "--bare", self.client)
        stream = [b"reset refs/heads/main\n"]
        who = b"committer A <a@example.org> %d +0000\ndata 1\nx\n"

        def file(path, data):
            return b"M 100644 inline %s\ndata %d\n%s\n" % (path.encode(), len(data), data)

        for number in range(self.PUSHES + 1):
            stream.append(b"commit refs/heads/main\nmark :%d\n" % (number + 1) + who % (1_700_000_000 + number))
            if number:
                stream.append(b"from :%d\n" % number)
            count, size = (100, 1000) if number else (96, 512 << 10)
            stream += [file(f"{number}/{n}", dice.randbytes(size)) for n in range(count)]
        subprocess.run(["git", "-C", self.client, "fast-import", "--quiet"], input=b"".join(stream), check=True)
        log = run("git", "-C", self.client, "rev-list", "--first-parent", "--reverse", "main").split()
        self.base, self.commits = log[0], log[1:]

    def push(self, commit):
        began = time.monotonic()
        command = ["git", "-C", self.client, "push", "-q", self.server, f"{commit}:refs/heads/main"]
        subprocess.run(command, check=True, stderr=subprocess.DEVNULL)
        return time.monotonic() - began

    def prepare(self, place):
        self.server = f"{place}/server.git"
        run("git", "init", "-q", "--bare", self.server)
        for key, value in [("receive.autogc", "false"), ("gc.auto", "0")]:
            run("git", "-C", self.server, "config", key, value)
        self.push(self.base)
        self.left = iter(self.commits)
        run("git", "-C", self.server, "repack", "-adq")
        self.usual = quantile([self.push(next(self.left)) for _ in range(7)], 0.5)

    def run(self, place, seconds):
        end, repacks = time.monotonic() + seconds, []

        def repack():
            while time.monotonic() < end:
                began = time.monotonic()
                run("git", "-C", self.server, "repack", "-adq")
                repacks.append(time.monotonic() - began)
                # 48 MiB at 4 MB/s.
                time.sleep(max(0.0, 12 - repacks[-1]))

        beside = threading.Thread(target=repack)
        beside.start()
        pushes = []
        while time.monotonic() < end:
            pushes.append(self.push(next(self.left)))
            time.sleep(0.2)
        beside.join()
        waits = [max(0.0, took - self.usual) for took in pushes]
        return {"waits_s": waits, "more": f"{len(repacks)} repacks, up to {max(repacks):.1f} s"}


class Camera(Program):
    """Four streams of 4 Mbit/s, each in its own ffmpeg that cuts it into files of 10 s. Before each is a buffer of 1 MiB that a
    camera fills in real time; what finds no room is lost. The page cache of the disk is held to 16 MiB, as when it is full. The
    waits are how far the recorder lags behind the camera."""

    name = "camera-recorder"
    STREAMS, RATE, BUFFER, TICK_S = 4, 500_000, 1 << 20, 1 / 16
    CACHE = 16 << 20

    def __init__(self, options, scratch):
        film = f"{scratch}/film.ts"
        run(
            *["ffmpeg", "-v", "error", "-f", "lavfi", "-i", "testsrc2=size=640x480:rate=25,noise=alls=40", "-t", "20"],
            *["-c:v", "mpeg2video", "-b:v", "3700k", "-minrate", "3700k", "-maxrate", "3700k", "-bufsize", "1000k"],
            *["-muxrate", "4000k", film],
        )
        self.film = open(film, "rb").read()

    def prepare(self, place):
        os.makedirs(f"{place}/recordings")
        device = os.stat(place).st_dev
        bdi = f"/sys/class/bdi/{os.major(device)}:{os.minor(device)}"
        for file, value in [("strict_limit", 1), ("max_bytes", self.CACHE)]:
            with open(f"{bdi}/{file}", "w") as out:
                out.write(str(value))
        self.bdi = bdi

    def run(self, place, seconds):
        recorders, pipes = [], []
        for number in range(self.STREAMS):
            reader, writer = os.pipe()
            fcntl.fcntl(writer, fcntl.F_SETPIPE_SZ, self.BUFFER)
            os.set_blocking(writer, False)
            command = ["ffmpeg", "-v", "quiet", "-f", "mpegts", "-i", "pipe:0", "-c", "copy", "-f", "segment"]
            command += ["-segment_time", "10", f"{place}/recordings/{number}-%03d.ts"]
            recorders.append(subprocess.Popen(command, stdin=reader))
            os.close(reader)
            pipes.append(writer)
        at, lags, lost, sent = [0] * self.STREAMS, [], 0, 0
        began = time.monotonic()
        for tick in range(int(seconds / self.TICK_S)):
            time.sleep(max(0.0, began + tick * self.TICK_S - time.monotonic()))
            due = int((time.monotonic() - began + self.TICK_S) * self.RATE)
            for number, pipe in enumerate(pipes):
                unread = array.array("i", [0])
                fcntl.ioctl(pipe, termios.FIONREAD, unread)
                # ffmpeg looks at the first seconds of a stream before it begins.
                if tick * self.TICK_S > 8:
                    lags.append(unread[0] / self.RATE)
                start = at[number] % len(self.film)
                piece = self.film[start : start + due - at[number]]
                at[number] += len(piece)
                sent += len(piece)
                try:
                    got = os.write(pipe, piece)
                except BlockingIOError:
                    got = 0
                lost += len(piece) - got
        for pipe in pipes:
            os.close(pipe)
        for recorder in recorders:
            recorder.wait()
        return {"waits_s": lags, "lost": lost / sent, "more": f"{100 * lost / sent:.1f} % of the pictures lost"}

    def end(self):
        for file, value in [("strict_limit", 0), ("max_ratio", 100)]:
            with open(f"{self.bdi}/{file}", "w") as out:
                out.write(str(value))


class HomeAssistant(Program):
    """SQLite with the tables and indices of Home Assistant's recorder for states, and its settings: a write-ahead log,
    synchronous=NORMAL. Each commit has the states of 5 s, 40 of them; a commit follows each 200 ms. The waits are the commits, with
    the checkpoints that SQLite does in some of them."""

    name = "home-assistant"
    limits_ms = (500, 1000, 5000)
    rubus_s = 60
    STATES, EVERY_S, ENTITIES, OLD = 40, 0.2, 300, 150_000
    SCHEMA = """
        CREATE TABLE states_meta (metadata_id INTEGER PRIMARY KEY, entity_id VARCHAR(255));
        CREATE UNIQUE INDEX ix_states_meta_entity_id ON states_meta (entity_id);
        CREATE TABLE state_attributes (attributes_id INTEGER PRIMARY KEY, hash BIGINT, shared_attrs TEXT);
        CREATE INDEX ix_state_attributes_hash ON state_attributes (hash);
        CREATE TABLE states (state_id INTEGER PRIMARY KEY, entity_id CHAR(0), state VARCHAR(255), attributes CHAR(0),
            event_id SMALLINT, last_changed CHAR(0), last_changed_ts FLOAT, last_reported_ts FLOAT, last_updated CHAR(0),
            last_updated_ts FLOAT, old_state_id INTEGER REFERENCES states (state_id),
            attributes_id INTEGER REFERENCES state_attributes (attributes_id), context_id CHAR(0), context_user_id CHAR(0),
            context_parent_id CHAR(0), origin_idx SMALLINT, context_id_bin BLOB, context_user_id_bin BLOB,
            context_parent_id_bin BLOB, metadata_id INTEGER REFERENCES states_meta (metadata_id));
        CREATE INDEX ix_states_metadata_id_last_updated_ts ON states (metadata_id, last_updated_ts);
        CREATE INDEX ix_states_context_id_bin ON states (context_id_bin);
        CREATE INDEX ix_states_last_updated_ts ON states (last_updated_ts);
        CREATE INDEX ix_states_old_state_id ON states (old_state_id);
        CREATE INDEX ix_states_attributes_id ON states (attributes_id);
    """

    def __init__(self, options, scratch):
        self.template = f"{scratch}/recorder.db"
        self.dice = random.Random(1)
        self.clock = 1.7e9
        self.last = {}
        with self.open(self.template) as db:
            db.executescript(self.SCHEMA)
            db.executemany("INSERT INTO states_meta VALUES (?, ?)", [(n, f"sensor.some_{n}") for n in range(self.ENTITIES)])
            for _ in range(self.OLD // self.STATES):
                self.record(db)
            db.commit()
        db.close()

    @staticmethod
    def open(path):
        db = sqlite3.connect(path, check_same_thread=False)
        # As the recorder sets them.
        for pragma in ["journal_mode=WAL", "cache_size=-16384", "synchronous=NORMAL", "foreign_keys=ON"]:
            db.execute(f"PRAGMA {pragma}")
        return db

    def record(self, db):
        for _ in range(self.STATES):
            self.clock += 5 / self.STATES
            entity = int(self.ENTITIES * self.dice.random() ** 2)
            # One in four brings attributes that were not there yet.
            if self.dice.random() < 0.25 or entity not in self.last:
                words = json.dumps({"friendly_name": f"Some {entity}", "value": self.dice.random(), "unit": "W" * 150})
                attributes = db.execute(
                    "INSERT INTO state_attributes (hash, shared_attrs) VALUES (?, ?)", (self.dice.getrandbits(32), words)
                ).lastrowid
            else:
                attributes = self.last[entity][1]
            # Contexts begin with the time, as ULIDs do.
            context = int(self.clock * 1000).to_bytes(6, "big") + self.dice.randbytes(10)
            state = db.execute(
                "INSERT INTO states (state, last_updated_ts, old_state_id, attributes_id, origin_idx, context_id_bin, metadata_id)"
                " VALUES (?, ?, ?, ?, 0, ?, ?)",
                (f"{self.dice.random():.3f}", self.clock, self.last.get(entity, [None])[0], attributes, context, entity),
            ).lastrowid
            self.last[entity] = (state, attributes)

    def prepare(self, place):
        path = f"{place}/home-assistant_v2.db"
        shutil.copy(self.template, path)
        self.remembered = (dict(self.last), self.clock)
        self.db = self.open(path)
        self.log = path + "-wal"

    def run(self, place, seconds):
        began, waits, biggest, calls = time.monotonic(), [], 0, 0
        pages = []
        while time.monotonic() < began + seconds:
            self.record(self.db)
            size = os.path.getsize(self.log) if os.path.exists(self.log) else 0
            at = time.monotonic()
            self.db.commit()
            waits.append(time.monotonic() - at)
            pages.append((os.path.getsize(self.log) - size) / 4096)
            time.sleep(max(0.0, self.EVERY_S - waits[-1]))
        growing = [page for page in pages if page > 0]
        typical = quantile(growing, 0.5) if growing else 0
        slow = sum(wait > 0.05 for wait in waits)
        return {"waits_s": waits, "more": f"{slow} of {len(waits)} commits over 50 ms; {typical:.0f} pages each while the log grows"}

    def end(self):
        self.db.close()
        self.last, self.clock = self.remembered


class Database(Program):
    """PostgreSQL with its defaults but a checkpoint each 30 s, and pgbench: 100 transactions per second of four clients,
    `simple-update`. The waits are the transactions, without what they come too late."""

    name = "database"
    limits_ms = (10, 100, 1000)

    def __init__(self, options, scratch):
        self.programs = options["postgres"]
        self.scratch = scratch

    def as_postgres(self, *words, **more):
        return run("runuser", "-u", "postgres", "--", *words, **more)

    def prepare(self, place):
        self.port = str(free_port())
        self.data = f"{place}/postgres"
        os.makedirs(self.data)
        shutil.chown(self.data, "postgres", "postgres")
        os.chmod(place, 0o755)
        self.as_postgres(f"{self.programs}/initdb", "-D", self.data, "--no-sync", "-A", "trust", cwd="/")
        options = f"-p {self.port} -k /tmp -c listen_addresses='' -c checkpoint_timeout=30s"
        log = f"{self.data}/log"
        self.as_postgres(f"{self.programs}/pg_ctl", "-D", self.data, "-l", log, "-w", "-o", options, "start", cwd="/")
        self.to = ["-h", "/tmp", "-p", self.port, "-U", "postgres"]
        run(f"{self.programs}/pgbench", *self.to, "-i", "-q", "-s", "5", "postgres", stderr=subprocess.DEVNULL)
        run(f"{self.programs}/psql", *self.to, "-c", "CHECKPOINT", "postgres")

    def run(self, place, seconds):
        prefix = f"{self.scratch}/pgbench"
        command = [f"{self.programs}/pgbench", *self.to, "-n", "-b", "simple-update", "-c", "4", "-R", "100"]
        subprocess.run(
            [*command, "-T", str(seconds), "-l", "--log-prefix", prefix, "postgres"],
            check=True,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        waits = []
        for log in glob.glob(prefix + ".*"):
            for line in open(log):
                took, late = int(line.split()[2]), int(line.split()[6])
                waits.append((took - late) / 1e6)
            os.unlink(log)
        return {"waits_s": waits, "more": f"{len(waits)} transactions"}

    def end(self):
        self.as_postgres(f"{self.programs}/pg_ctl", "-D", self.data, "-m", "immediate", "-w", "stop", cwd="/")


PROGRAMS = [Etcd, HomeAssistant, Database, Git, Camera]
