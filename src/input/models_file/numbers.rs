//! Numbers of the models file, the command line and the environment: one rule for all three.

use crate::domain::topology::whole_number;

/// Whether a text is a number that the field takes. The error continues the sentence "`field` …".
pub fn check_tuning_number(field: &str, text: &str) -> Result<(), String> {
    match field {
        "mem_frac_static" => match decimal(text)? {
            value if value > 0.0 && value <= 1.0 => Ok(()),
            value if value > 1.0 && value <= 100.0 => Err(format!(
                "must be a fraction above 0 and at most 1 ({} for {text} percent)",
                value / 100.0
            )),
            _ => Err("must be a fraction above 0 and at most 1".into()),
        },
        "scheduler_delay_factor" => match decimal(text)? {
            value if value >= 0.0 => Ok(()),
            _ => Err("must not be negative".into()),
        },
        _ => match whole_number(text)? {
            0 => Err("must be at least 1".into()),
            // The server keeps these in C integers and sizes memory by them.
            1..=2_147_483_647 => Ok(()),
            _ => Err("must be at most 2147483647".into()),
        },
    }
}

/// A decimal number as Python's `float` reads it, without its exotic forms.
fn decimal(text: &str) -> Result<f64, String> {
    let plain = !text.is_empty()
        && text
            .bytes()
            .all(|byte| byte.is_ascii_digit() || matches!(byte, b'.' | b'e' | b'E' | b'-' | b'+'));
    let leading_zero =
        text.len() > 1 && text.starts_with('0') && text.as_bytes()[1].is_ascii_digit();
    match text.parse::<f64>() {
        Ok(value) if plain && !leading_zero && !text.starts_with('+') && value.is_finite() => {
            Ok(value)
        }
        _ => Err("must be a decimal number".into()),
    }
}
