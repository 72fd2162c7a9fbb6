//! `rubus history`: earlier runs.

use anyhow::Context;
use rubus_core::history::RunId;
use rubus_core::verdict::verdict;
use rubus_store::History;

use crate::args::{General, History as HistoryArgs, HistoryAction, HistoryShow};
use crate::exit::Exit;
use crate::places;
use crate::world::Terminal;

/// Lists the runs, or shows one.
pub fn run(general: &General, history: &HistoryArgs) -> anyhow::Result<Exit> {
    match &history.action {
        None => list(general, history),
        Some(HistoryAction::Show(show)) => show_one(general, show, history.json.wanted),
    }
}

fn list(general: &General, history: &HistoryArgs) -> anyhow::Result<Exit> {
    let Some(store) = open_existing()? else {
        if history.json.wanted {
            places::say("[]\n")?;
        } else {
            places::say("no runs yet; `rubus` measures the disk under the current directory\n")?;
        }
        return Ok(Exit::Fine);
    };
    let runs = store.list(history.limit, 0)?;
    if history.json.wanted {
        places::say(&(serde_json::to_string_pretty(&runs)? + "\n"))?;
    } else {
        places::say(&rubus_show::history::render(
            &runs,
            Terminal::of(general).style(),
        ))?;
    }
    Ok(Exit::Fine)
}

fn show_one(general: &General, show: &HistoryShow, json: bool) -> anyhow::Result<Exit> {
    let store = open_existing()?.context("there is no history yet, so there is no run to show")?;
    let run = store.get(RunId(show.id))?.run;
    let verdict = verdict(&run);
    if let Some(path) = &show.html {
        places::write_whole(path, &rubus_show::page::render(&run, &verdict))?;
    }
    if json || show.json.wanted {
        places::say(&(super::checkup::json(&run, &verdict)? + "\n"))?;
    } else {
        let style = Terminal::of(general).style();
        places::say(&rubus_show::checkup::render(&run, &verdict, style))?;
    }
    Ok(Exit::Fine)
}

/// The history, if there is one; looking must not make an empty one.
fn open_existing() -> anyhow::Result<Option<History>> {
    let path = places::history()?;
    if !path.exists() {
        return Ok(None);
    }
    Ok(Some(History::open(&path)?))
}
