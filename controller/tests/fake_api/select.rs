//! Label and field selectors, as far as equality and existence go.

use super::status::Problem;
use super::store::Object;

/// Which objects a list or a watch is about.
#[derive(Clone, Debug, Default)]
pub(crate) struct Selector {
    namespace: Option<String>,
    terms: Vec<Term>,
}

#[derive(Clone, Debug)]
enum Term {
    Label { key: String, value: String, equal: bool },
    HasLabel { key: String, wanted: bool },
    Name { name: String, equal: bool },
    Namespace { name: String, equal: bool },
}

impl Selector {
    pub(crate) fn parse(namespace: Option<&str>, labels: &str, fields: &str) -> Result<Self, Problem> {
        let mut terms = Vec::new();
        for term in labels.split(',').filter(|term| !term.is_empty()) {
            terms.push(label_term(term)?);
        }
        for term in fields.split(',').filter(|term| !term.is_empty()) {
            terms.push(field_term(term)?);
        }
        Ok(Self { namespace: namespace.map(str::to_owned), terms })
    }

    pub(crate) fn namespace(&self) -> Option<&str> {
        self.namespace.as_deref()
    }

    pub(crate) fn matches(&self, object: &Object) -> bool {
        self.namespace.as_ref().is_none_or(|namespace| *namespace == object.namespace)
            && self.terms.iter().all(|term| term.holds(object))
    }
}

impl Term {
    fn holds(&self, object: &Object) -> bool {
        match self {
            Self::Label { key, value, equal } => (object.labels.get(key) == Some(value)) == *equal,
            Self::HasLabel { key, wanted } => object.labels.contains_key(key) == *wanted,
            Self::Name { name, equal } => (object.name == *name) == *equal,
            Self::Namespace { name, equal } => (object.namespace == *name) == *equal,
        }
    }
}

/// Splits at `!=`, `==` or `=`.
fn comparison(term: &str) -> Option<(&str, &str, bool)> {
    let found = |separator: &str, equal| term.split_once(separator).map(|(key, value)| (key, value, equal));
    found("!=", false).or_else(|| found("==", true)).or_else(|| found("=", true))
}

fn label_term(term: &str) -> Result<Term, Problem> {
    if term.contains(['(', ')', ' ']) {
        return Err(Problem::bad_request(format!("set-based selectors are not served: {term}")));
    }
    Ok(match comparison(term) {
        Some((key, value, equal)) => Term::Label { key: key.into(), value: value.into(), equal },
        None => match term.strip_prefix('!') {
            Some(key) => Term::HasLabel { key: key.into(), wanted: false },
            None => Term::HasLabel { key: term.into(), wanted: true },
        },
    })
}

fn field_term(term: &str) -> Result<Term, Problem> {
    match comparison(term) {
        Some(("metadata.name", name, equal)) => Ok(Term::Name { name: name.into(), equal }),
        Some(("metadata.namespace", name, equal)) => Ok(Term::Namespace { name: name.into(), equal }),
        _ => Err(Problem::bad_request(format!("field label not supported: {term}"))),
    }
}
