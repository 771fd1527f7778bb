//! The report as one page that needs nothing else: a timeline of phases and processes, and what each rank ran.

use std::fmt::Write as _;

use super::{last_moment, outcome};
use crate::domain::words;
use crate::run::event::{Phase, Verdict};
use crate::run::manifest::{Manifest, Process};
use crate::run::records::{Records, decided};

const LEFT: f64 = 170.0;
const WIDTH: f64 = 900.0;
const ROW: f64 = 20.0;

const STYLE: &str = "
:root { color-scheme: light dark; }
body { font: 14px/1.45 system-ui, sans-serif; margin: 2em auto; max-width: 1120px; padding: 0 1em; }
svg { width: 100%; height: auto; font-size: 11px; }
svg text { fill: currentColor; }
.preflight { fill: #9ca3af; } .servers { fill: #f59e0b; } .router { fill: #8b5cf6; } .smoke { fill: #ec4899; }
.workload { fill: #10b981; } .serving { fill: #3b82f6; } .hold, .linger { fill: #84cc16; } .teardown { fill: #64748b; }
.process { fill: #60a5fa; opacity: .55; } .bad { fill: #dc2626; } .grid { stroke: currentColor; opacity: .15; }
table { border-collapse: collapse; } td, th { padding: .2em .8em .2em 0; text-align: left; vertical-align: top; }
.failed { color: #dc2626; font-weight: 600; } code, pre { font-size: 12px; }
pre { white-space: pre-wrap; overflow-wrap: anywhere; background: #8881; padding: .6em; border-radius: 4px; }
.key span { display: inline-block; margin-right: 1em; } .key svg { width: 12px; height: 12px; vertical-align: -1px; margin-right: .3em; }
";

/// The whole page.
pub fn html(report: &Records) -> String {
    let model = report.ranks.first().map_or("", |one| one.model.as_str());
    let title = format!("atom-launch: {}", escape(model));
    let mut out = format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>{title}</title>\n<style>{STYLE}</style></head><body>\n<h1>{title}</h1>\n"
    );
    summary(report, &mut out);
    timeline(report, &mut out);
    outcomes(report, &mut out);
    for one in &report.ranks {
        commands(one, &mut out);
    }
    out.push_str("</body></html>\n");
    out
}

// Writing into a string cannot fail: the results of `write!` below are dropped for that reason.

fn summary(report: &Records, out: &mut String) {
    if let Some(first) = report.first_failure() {
        let after = decided(first) - report.begin();
        let _ = writeln!(
            out,
            "<p class=\"failed\">first to fail: rank {} after {after:.1} s: {}</p>",
            first.rank,
            escape(&first.reason)
        );
    }
    if let Some(one) = report.ranks.first() {
        let file = escape(&one.models_file);
        let _ = writeln!(
            out,
            "<p>{} ranks, started {}, atom-launch {}, models file {file} <code>{}</code></p>",
            one.ranks,
            escape(&one.started_at),
            escape(&one.version),
            escape(one.models_sha256.get(..12).unwrap_or(&one.models_sha256))
        );
    }
    for rank in report.missing() {
        let _ = writeln!(
            out,
            "<p class=\"failed\">rank {rank} has left no record</p>"
        );
    }
    for why in &report.unreadable {
        let _ = writeln!(out, "<p class=\"failed\">not readable: {}</p>", escape(why));
    }
}

fn timeline(report: &Records, out: &mut String) {
    let begin = report.begin();
    let ends = report
        .ranks
        .iter()
        .map(|one| one.started_unix - begin + last_moment(one));
    let span = ends.fold(0.001, f64::max);
    let rows: usize = report.ranks.iter().map(|one| 1 + one.processes.len()).sum();
    #[expect(clippy::cast_precision_loss, reason = "a few hundred rows")]
    let height = ROW * (rows as f64 + 2.0);
    let x = |seconds: f64| LEFT + WIDTH * seconds / span;
    let _ = writeln!(
        out,
        "<svg viewBox=\"0 0 {} {height}\" role=\"img\" aria-label=\"timeline\">",
        LEFT + WIDTH + 40.0
    );
    for mark in marks(span) {
        let at = x(mark);
        let _ = writeln!(
            out,
            "<line class=\"grid\" x1=\"{at:.1}\" x2=\"{at:.1}\" y1=\"0\" y2=\"{:.1}\"/><text x=\"{at:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{mark} s</text>",
            height - ROW,
            height - 6.0
        );
    }
    rows_of(report, x, out);
    out.push_str("</svg>\n");
    key(report, out);
}

fn rows_of(report: &Records, x: impl Fn(f64) -> f64, out: &mut String) {
    let begin = report.begin();
    let mut y = 2.0;
    for one in &report.ranks {
        let shift = one.started_unix - begin;
        let _ = writeln!(
            out,
            "<text x=\"0\" y=\"{:.1}\" font-weight=\"600\">rank {} {}</text>",
            y + 13.0,
            one.rank,
            escape(&one.host)
        );
        for phase in &one.phases {
            let end = phase.end_s.unwrap_or_else(|| last_moment(one));
            bar(
                out,
                phase.phase.name(),
                y,
                x(shift + phase.start_s),
                x(shift + end),
                &format!("{}: {:.3} s", phase.phase, end - phase.start_s),
            );
        }
        if one.outcome == Verdict::Failed {
            let at = x(decided(one) - begin);
            let _ = writeln!(
                out,
                "<circle class=\"bad\" cx=\"{at:.1}\" cy=\"{:.1}\" r=\"6\"><title>{}</title></circle>",
                y + 8.0,
                escape(&one.reason)
            );
        }
        y += ROW;
        for process in &one.processes {
            let _ = writeln!(
                out,
                "<text x=\"14\" y=\"{:.1}\">{}</text>",
                y + 12.0,
                escape(&process.name)
            );
            let end = process.ended_s.unwrap_or_else(|| last_moment(one));
            let class = if one.culprit.as_ref() == Some(&process.name) {
                "bad"
            } else {
                "process"
            };
            let how = process.exit.as_deref().unwrap_or("no end recorded");
            bar(
                out,
                class,
                y,
                x(shift + process.started_s),
                x(shift + end),
                &format!("{}: {how}", process.name),
            );
            y += ROW;
        }
    }
}

fn key(report: &Records, out: &mut String) {
    out.push_str("<p class=\"key\">");
    let phases = [
        Phase::Preflight,
        Phase::Servers,
        Phase::Router,
        Phase::Smoke,
        Phase::Workload,
        Phase::Serving,
        Phase::Hold,
        Phase::Linger,
        Phase::Teardown,
    ];
    for phase in phases {
        if report
            .ranks
            .iter()
            .any(|one| one.phases.iter().any(|time| time.phase == phase))
        {
            let _ = write!(
                out,
                "<span><svg viewBox=\"0 0 12 12\"><rect class=\"{phase}\" width=\"12\" height=\"12\"/></svg>{phase}</span>"
            );
        }
    }
    out.push_str("</p>\n");
}

fn bar(out: &mut String, class: &str, y: f64, from: f64, to: f64, title: &str) {
    let width = (to - from).max(1.0);
    let _ = writeln!(
        out,
        "<rect class=\"{class}\" x=\"{from:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{:.1}\" rx=\"2\"><title>{}</title></rect>",
        ROW - 4.0,
        escape(title)
    );
}

/// Round moments for the axis, at most about ten.
fn marks(span: f64) -> Vec<f64> {
    let steps = [
        0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1800.0, 3600.0, 7200.0,
    ];
    let step = steps
        .into_iter()
        .find(|step| span / step <= 10.0)
        .unwrap_or(span / 8.0);
    let mut marks = Vec::new();
    let mut number = 0_u32;
    while f64::from(number) * step <= span {
        marks.push((f64::from(number) * step * 10.0).round() / 10.0);
        number += 1;
    }
    marks
}

fn outcomes(report: &Records, out: &mut String) {
    out.push_str(
        "<table><tr><th>rank</th><th>host</th><th>code</th><th>outcome</th><th>reason</th></tr>\n",
    );
    for one in &report.ranks {
        let class = if one.outcome == Verdict::Failed {
            " class=\"failed\""
        } else {
            ""
        };
        let code = one
            .exit_code
            .map_or_else(|| "-".to_owned(), |code| code.to_string());
        let _ = writeln!(
            out,
            "<tr><td>{}</td><td>{}</td><td>{code}</td><td{class}>{}</td><td>{}</td></tr>",
            one.rank,
            escape(&one.host),
            escape(&outcome(one)),
            escape(&one.reason)
        );
    }
    out.push_str("</table>\n");
}

fn commands(one: &Manifest, out: &mut String) {
    for process in &one.processes {
        let how = process.exit.as_deref().unwrap_or("no end recorded");
        let _ = writeln!(
            out,
            "<details><summary>rank {}: {}, {}, log <code>{}</code></summary>\n<pre>{}</pre></details>",
            one.rank,
            escape(&process.name),
            escape(how),
            escape(&process.log),
            escape(&command(process))
        );
    }
}

fn command(process: &Process) -> String {
    let mut text = String::new();
    for variable in &process.env {
        let _ = writeln!(
            text,
            "{}={}  # {}",
            variable.name,
            words::quote(&variable.value),
            variable.source
        );
    }
    text.push_str(&words::join(&process.argv));
    text
}

fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            '\n' | '\t' => out.push(letter),
            control if control.is_control() => out.extend(control.escape_unicode()),
            other => out.push(other),
        }
    }
    out
}
