//! `report`: the records of a job → a table or a page.

use crate::cli::{ReportArgs, ReportFormat};
use crate::exit;
use crate::render;
use crate::report;
use crate::run::records::Records;

/// `atom-launch report`
pub(super) fn report_command(args: &ReportArgs) -> anyhow::Result<u8> {
    let records = match Records::read(&args.folder) {
        Ok(records) => records,
        Err(problem) => {
            render::to_stderr(&format!("error: {problem}\n"));
            return Ok(exit::USAGE);
        }
    };
    let text = match args.format {
        ReportFormat::Text => report::text(&records),
        ReportFormat::Html => report::html(&records),
    };
    render::to_stdout(text.as_bytes())?;
    Ok(if args.exit_code {
        records.exit_code()
    } else {
        exit::OK
    })
}
