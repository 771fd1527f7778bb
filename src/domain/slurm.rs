//! How sbatch reads the values of its options. It says what is wrong only once a script is submitted, so it is said here before.

/// Whether this can be a time limit: `30`, `30:00`, `2:00:00`, `1-12`, `1-12:30`, `1-12:30:00`, or a word for none.
pub fn is_time_limit(text: &str) -> bool {
    if ["INFINITE", "UNLIMITED"]
        .iter()
        .any(|word| text.eq_ignore_ascii_case(word))
    {
        return true;
    }
    let (days, clock) = match text.split_once('-') {
        Some((days, clock)) => (Some(days), clock),
        None => (None, text),
    };
    let is_number =
        |part: &str| (1..=9).contains(&part.len()) && part.bytes().all(|b| b.is_ascii_digit());
    days.is_none_or(is_number) && clock.split(':').count() <= 3 && clock.split(':').all(is_number)
}

/// Whether this can be a list of generic resources: `gpu`, `gpu:8`, `gpu:mi355x:8,nvme:2T`.
pub fn is_gres(text: &str) -> bool {
    let is_name = |part: &str| {
        part.starts_with(|c: char| c.is_ascii_alphabetic())
            && part
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || b"_-./".contains(&b))
    };
    let is_count = |part: &str| {
        let digits = part.trim_end_matches(|c: char| "kKmMgGtTpP".contains(c));
        part.len() - digits.len() <= 1
            && !digits.is_empty()
            && digits.bytes().all(|b| b.is_ascii_digit())
    };
    text.split(',').all(|entry| {
        let parts: Vec<&str> = entry.split(':').collect();
        match parts.as_slice() {
            [name] => is_name(name),
            [name, last] => is_name(name) && (is_name(last) || is_count(last)),
            [name, kind, last] => is_name(name) && is_name(kind) && is_count(last),
            _ => false,
        }
    })
}

/// Whether a value stays one word in a line that starts with `#SBATCH`, where quotes, backslashes and `#` mean something.
pub fn is_one_word(text: &str) -> bool {
    let odd = |c: char| c.is_whitespace() || c.is_control() || "\"'\\#".contains(c);
    !text.is_empty() && !text.contains(odd)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_as_sbatch_reads_them() {
        for time in [
            "0",
            "30",
            "90:00",
            "2:00:00",
            "02:00:00",
            "1-12",
            "1-12:30",
            "1-12:30:00",
            "UNLIMITED",
            "infinite",
        ] {
            assert!(is_time_limit(time), "{time}");
        }
        for time in [
            "", "2h", "1.5", "1:2:3:4", ":30", "30:", "1-", "-1:00", "1-2-3", "1 day", "+3",
            "forever",
        ] {
            assert!(!is_time_limit(time), "{time}");
        }
    }

    #[test]
    fn resources_have_a_name_and_perhaps_a_type_and_a_count() {
        for list in ["gpu", "gpu:8", "gpu:mi355x:8", "gpu:mi355x,nvme:2T", "none"] {
            assert!(is_gres(list), "{list}");
        }
        for list in [
            "",
            "8",
            "gpu:",
            "gpu=8",
            "gpu:8:mi355x",
            "gpu,,nvme",
            "gpu 8",
            "gpu:8x2",
        ] {
            assert!(!is_gres(list), "{list}");
        }
    }

    #[test]
    fn what_sbatch_would_take_apart_is_no_word() {
        assert!(is_one_word("v4-1p1d") && is_one_word("a,b"));
        for text in ["", "a b", "a#b", "it's", "a\\b", "\"a\"", "a\nb"] {
            assert!(!is_one_word(text), "{text}");
        }
    }
}
