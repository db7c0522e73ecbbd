//! The intent that is asked for on the command line, as a value and as YAML.

use serde_json::{Map, Value, json};

use crate::scalar;

/// A claim that the group shares, made from a template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    /// The name by which pods refer to it.
    pub name: String,
    /// The ResourceClaimTemplate.
    pub template: String,
}

impl std::str::FromStr for Claim {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once('=') {
            Some((name, template)) if !name.is_empty() && !template.is_empty() => {
                Ok(Self { name: name.to_owned(), template: template.to_owned() })
            }
            _ => Err("must be NAME=TEMPLATE".to_owned()),
        }
    }
}

impl Claim {
    /// The entry in a list of claims.
    pub fn value(&self) -> Value {
        json!({"name": self.name, "resourceClaimTemplateName": self.template})
    }

    /// The same as lines of YAML.
    pub fn lines(&self) -> [String; 2] {
        [format!("- name: {}", scalar(&self.name)), format!("  resourceClaimTemplateName: {}", scalar(&self.template))]
    }
}

/// What preemption takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Disruption {
    /// One pod.
    Single,
    /// The whole group.
    All,
}

/// What is asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wish {
    /// All pods or none.
    pub gang: bool,
    /// The node label of the domain that all pods share.
    pub topology: Option<String>,
    /// What preemption takes.
    pub disruption: Option<Disruption>,
    /// The shared claims.
    pub claims: Vec<Claim>,
}

impl Wish {
    /// The intent.
    pub fn value(&self) -> Value {
        let mut intent = Map::new();
        if self.gang {
            intent.insert("schedulingPolicy".to_owned(), json!({"gang": {}}));
        }
        if let Some(key) = &self.topology {
            intent.insert("schedulingConstraints".to_owned(), json!({"topology": [{"key": key}]}));
        }
        if let Some(mode) = self.disruption {
            let mode = if mode == Disruption::All { json!({"all": {}}) } else { json!({"single": {}}) };
            intent.insert("disruptionMode".to_owned(), mode);
        }
        if !self.claims.is_empty() {
            intent.insert("resourceClaims".to_owned(), self.claims.iter().map(Claim::value).collect());
        }
        Value::Object(intent)
    }

    /// The same as lines of YAML; none for an intent without members.
    pub fn lines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        if self.gang {
            lines.extend(["schedulingPolicy:".to_owned(), "  gang: {}".to_owned()]);
        }
        if let Some(key) = &self.topology {
            lines.extend(["schedulingConstraints:", "  topology:"].map(str::to_owned));
            lines.push(format!("  - key: {}", scalar(key)));
        }
        if let Some(mode) = self.disruption {
            let mode = if mode == Disruption::All { "all" } else { "single" };
            lines.extend(["disruptionMode:".to_owned(), format!("  {mode}: {{}}")]);
        }
        if !self.claims.is_empty() {
            lines.push("resourceClaims:".to_owned());
            lines.extend(self.claims.iter().flat_map(Claim::lines));
        }
        lines
    }
}

/// `text` as YAML: as it is where it can only be text, else in quotes.
fn scalar(text: &str) -> String {
    let mut json = String::new();
    scalar::write(&mut json, text, saphyr_parser::ScalarStyle::Plain, None);
    let clean = text.starts_with(|c: char| c.is_ascii_alphanumeric())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._/".contains(&byte));
    // YAML 1.1, which kubectl reads, has more words for true and false.
    let word = matches!(text.to_ascii_lowercase().as_str(), "y" | "n" | "yes" | "no" | "on" | "off");
    if clean && !word && json.starts_with('"') {
        return text.to_owned();
    }
    let mut quoted = String::new();
    scalar::string(&mut quoted, text);
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tape::Tape;

    #[test]
    fn the_lines_say_what_the_value_says() {
        let claim = |name: &str| Claim { name: name.to_owned(), template: "3".to_owned() };
        for wish in [
            Wish { gang: true, ..Wish::default() },
            Wish { topology: Some("topology.kubernetes.io/zone".to_owned()), ..Wish::default() },
            Wish { topology: Some("a: #b".to_owned()), disruption: Some(Disruption::Single), ..Wish::default() },
            Wish {
                gang: true,
                disruption: Some(Disruption::All),
                claims: vec![claim("a"), claim("yes")],
                topology: Some("1".into()),
            },
        ] {
            let mut tape = Tape::default();
            tape.read(&wish.lines().join("\n")).unwrap();
            let read: Value = serde_json::from_str(&tape.json(tape.root().unwrap())).unwrap();
            assert_eq!(read, wish.value());
        }
        assert_eq!(Wish::default().lines(), Vec::<String>::new());
    }

    #[test]
    fn a_claim_has_a_name_and_a_template() {
        assert_eq!("a=b".parse(), Ok(Claim { name: "a".to_owned(), template: "b".to_owned() }));
        for text in ["a", "a=", "=b", ""] {
            assert!(text.parse::<Claim>().is_err(), "{text}");
        }
    }
}
