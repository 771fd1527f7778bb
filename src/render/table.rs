//! Aligned columns. Knows no type of the domain.

use std::borrow::Cow;

use unicode_width::UnicodeWidthStr as _;

use crate::domain::visible::visible;

/// Rows with every column padded to its widest cell; the last column is not padded. No trailing blanks, no hidden characters.
pub fn aligned(rows: &[Vec<String>]) -> String {
    aligned_with(rows, |_| false)
}

/// The same with some columns, such as those of numbers, at the right edge.
pub fn aligned_with(rows: &[Vec<String>], right: impl Fn(usize) -> bool) -> String {
    let rows: Vec<Vec<Cow<'_, str>>> = rows
        .iter()
        .map(|row| row.iter().map(|cell| visible(cell)).collect())
        .collect();
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns)
        .map(|column| {
            rows.iter()
                .filter(|row| row.len() > column + 1)
                .map(|row| row[column].width())
                .max()
                .unwrap_or(0)
        })
        .collect();
    let mut text = String::new();
    for row in &rows {
        let mut line = String::new();
        for (column, (cell, width)) in row.iter().zip(&widths).enumerate() {
            let fill = " ".repeat(width.saturating_sub(cell.width()));
            let (before, after) = if right(column) {
                (fill.as_str(), "")
            } else {
                ("", fill.as_str())
            };
            line.extend([before, cell, after, "  "]);
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

/// A text cut to a width, with `…` where something is left out.
pub fn cut(text: &str, width: usize) -> String {
    if text.width() <= width {
        return text.to_owned();
    }
    let mut kept = String::new();
    let mut used = 0;
    for c in text.chars() {
        let next = unicode_width::UnicodeWidthChar::width(c).unwrap_or(0);
        if used + next + 1 > width {
            break;
        }
        used += next;
        kept.push(c);
    }
    kept + "…"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up_by_display_width() {
        let rows = [
            vec!["a".to_owned(), "x".to_owned()],
            vec!["漢字".to_owned(), "y".to_owned()],
        ];
        assert_eq!(aligned(&rows), "a     x\n漢字  y\n");
        let numbers = [
            vec!["rank".to_owned(), "x".to_owned()],
            vec!["7".to_owned(), "y".to_owned()],
        ];
        assert_eq!(
            aligned_with(&numbers, |column| column == 0),
            "rank  x\n   7  y\n"
        );
        assert_eq!(cut("漢字abc", 5), "漢字…");
        assert_eq!(cut("abc", 3), "abc");
    }
}
