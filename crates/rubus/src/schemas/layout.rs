//! How a schema is laid out: as JSON usually is, except that a list or an object of plain values is on one line where it fits.

use serde_json::Value;

/// Columns of a line.
const COLUMNS: usize = 80;
/// Columns by which each level is set in.
const INDENT: usize = 2;

/// The text of a file.
pub fn text(value: &Value) -> String {
    let mut text = String::new();
    write(value, 0, &mut text);
    text.push('\n');
    text
}

/// Writes a value behind what its line already has.
fn write(value: &Value, depth: usize, text: &mut String) {
    let (open, close, parts): (&str, &str, Vec<(String, &Value)>) = match value {
        Value::Array(items) => ("[", "]", items.iter().map(|item| (String::new(), item)).collect()),
        Value::Object(fields) => {
            let named = fields.iter().map(|(name, field)| {
                let name = Value::from(name.as_str());
                (format!("{name}: "), field)
            });
            ("{", "}", named.collect())
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
            text.push_str(&value.to_string());
            return;
        }
    };
    let is_plain = parts.iter().all(|(_, part)| !part.is_array() && !part.is_object());
    let line = on_one_line(open, close, &parts);
    let begun = text.rsplit('\n').next().unwrap_or_default().chars().count();
    // One column is for a comma.
    if is_plain && (parts.is_empty() || begun + line.chars().count() < COLUMNS) {
        text.push_str(&line);
        return;
    }
    text.push_str(open);
    for (at, (name, part)) in parts.iter().enumerate() {
        let comma = if at == 0 { "" } else { "," };
        text.push_str(&format!("{comma}\n{:1$}{name}", "", INDENT * (depth + 1)));
        write(part, depth + 1, text);
    }
    text.push_str(&format!("\n{:1$}{close}", "", INDENT * depth));
}

fn on_one_line(open: &str, close: &str, parts: &[(String, &Value)]) -> String {
    let parts: Vec<String> = parts.iter().map(|(name, part)| format!("{name}{part}")).collect();
    let space = if open == "{" && !parts.is_empty() { " " } else { "" };
    format!("{open}{space}{}{space}{close}", parts.join(", "))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn lists_and_objects_of_plain_values_are_on_one_line_where_they_fit() {
        let value = json!({
            "anyOf": [{ "$ref": "#/$defs/Effect" }, { "type": "null" }],
            "description": "Ratio; \"null\" with fewer than two rounds.",
            "examples": [],
            "properties": {
                "fits": { "description": "As much as fits on one line here", "minimum": 0 },
                "long": {
                    "description": "A sentence that leaves no room for anything else on its line.",
                    "type": ["string", "null"],
                },
                "more": { "description": "As much as fits on one line here.", "minimum": 0 },
            },
            "required": ["low", "high"],
        });
        let expected = r##"{
  "anyOf": [
    { "$ref": "#/$defs/Effect" },
    { "type": "null" }
  ],
  "description": "Ratio; \"null\" with fewer than two rounds.",
  "examples": [],
  "properties": {
    "fits": { "description": "As much as fits on one line here", "minimum": 0 },
    "long": {
      "description": "A sentence that leaves no room for anything else on its line.",
      "type": ["string", "null"]
    },
    "more": {
      "description": "As much as fits on one line here.",
      "minimum": 0
    }
  },
  "required": ["low", "high"]
}
"##;
        assert_eq!(text(&value), expected);
    }
}
