//! What a rehearsal says before and after.

use super::Voice;
use super::cast::Cast;
use super::conduct::Conductor;
use super::faults::Fault;
use crate::render;

pub(super) fn introduce(cast: &Cast, faults: &[Fault], voice: &dyn Voice) {
    let mut rows = Vec::new();
    for (rank, address) in (0..).zip(&cast.scene.addresses) {
        rows.push(vec![
            format!("  rank {rank}"),
            address.clone(),
            cast.roles(rank),
        ]);
    }
    let ranks = render::count(cast.scene.addresses.len(), "rank");
    let mut text = format!(
        "rehearsal of {}: {ranks}, nothing is computed\n",
        cast.plan.model
    );
    text.push_str(&render::table::aligned(&rows));
    if let Some(router) = &cast.plan.router {
        text.push_str(&format!(
            "  router at http://{}:{}\n",
            router.node, router.port.value
        ));
    }
    for fault in faults {
        text.push_str(&format!("  fault: {fault}\n"));
    }
    text.push_str(&format!("  logs in {}\n", cast.log_dir.display()));
    voice.say(text.trim_end());
}

pub(super) fn conclude(cast: &Cast, conductor: &Conductor, voice: &dyn Voice) {
    let mut rows = vec![
        ["rank", "processes", "outcome", "exit", "seconds"]
            .map(str::to_owned)
            .to_vec(),
    ];
    for (rank, index) in (0..cast.plan.ranks).zip(0..) {
        let end = conductor.end(index);
        rows.push(vec![
            rank.to_string(),
            cast.roles(rank),
            conductor.outcome(index),
            end.map_or_else(String::new, |end| end.code.to_string()),
            end.map_or_else(String::new, |end| format!("{:.1}", end.at.as_secs_f64())),
        ]);
    }
    voice.say(&format!("\n{}", render::table::aligned(&rows).trim_end()));
}

/// Where the logs are, or that they are gone.
pub(super) fn farewell(cast: &Cast, voice: &dyn Voice) {
    let folder = cast.folder.path.display();
    if !cast.own_logs {
        voice.say(&format!("logs: {}", cast.log_dir.display()));
    } else if !cast.folder.keep {
        voice.say("logs: deleted; --keep or --log-dir DIR keeps them");
    }
    if cast.folder.keep {
        let what = if cast.own_logs {
            "kept, logs included"
        } else {
            "kept"
        };
        voice.say(&format!("{what}: {folder}"));
    }
}
