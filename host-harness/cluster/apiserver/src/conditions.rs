//! Match conditions of webhooks, in CEL.
//!
//! Stands for `matchConditions`: all must hold for the webhook to be asked; one that does not hold is
//! stronger than one that cannot be evaluated. Left out: the cost budget, `request`, `authorizer`, and the
//! functions that Kubernetes adds to CEL.

use std::fmt;
use std::sync::Arc;

use cel::{Context, Program, Value as Cel};
use serde_json::Value;

/// A condition that is ready to be evaluated.
#[derive(Clone)]
pub struct Condition {
    name: String,
    program: Arc<Program>,
}

/// What the conditions of a webhook say about a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Matched {
    /// All hold.
    Yes,
    /// One does not.
    No,
    /// One cannot be evaluated, and none says no.
    Failed(String),
}

impl Condition {
    /// Compiles an expression.
    ///
    /// # Errors
    /// It is no CEL.
    pub fn new(name: &str, expression: &str) -> Result<Self, String> {
        let program = Program::compile(expression).map_err(|error| format!("{name}: {error}"))?;
        Ok(Self { name: name.to_owned(), program: Arc::new(program) })
    }

    fn evaluate(&self, context: &Context<'_, '_>) -> Result<bool, String> {
        match self.program.execute(context) {
            Ok(Cel::Bool(holds)) => Ok(holds),
            Ok(_) => Err(format!("{} is no bool", self.name)),
            Err(error) => Err(format!("{}: {error}", self.name)),
        }
    }
}

impl fmt::Debug for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Condition").field(&self.name).finish()
    }
}

/// Evaluates conditions about an object and what it replaces.
pub(crate) fn matched(conditions: &[Condition], object: Option<&Value>, old: Option<&Value>) -> Matched {
    if conditions.is_empty() {
        return Matched::Yes;
    }
    let mut context = Context::default();
    for (name, value) in [("object", object), ("oldObject", old)] {
        if let Err(error) = context.add_variable(name, value.unwrap_or(&Value::Null)) {
            return Matched::Failed(error.to_string());
        }
    }
    let mut matched = Matched::Yes;
    for condition in conditions {
        match condition.evaluate(&context) {
            Ok(true) => {}
            Ok(false) => return Matched::No,
            Err(why) => matched = Matched::Failed(why),
        }
    }
    matched
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn all_conditions_must_hold_and_a_no_is_stronger_than_a_failure() {
        let condition = |text| Condition::new("condition", text).expect("it is CEL");
        let (yes, no) = (condition("has(object.spec.a)"), condition("has(object.spec.b) || oldObject != null"));
        let failing = condition("object.spec.b.c == 1");
        let object = json!({ "spec": { "a": 1 } });
        let matched = |conditions: &[&Condition]| {
            let conditions: Vec<_> = conditions.iter().copied().cloned().collect();
            super::matched(&conditions, Some(&object), None)
        };
        assert_eq!(matched(&[]), Matched::Yes);
        assert_eq!(matched(&[&yes]), Matched::Yes);
        assert_eq!(matched(&[&yes, &no]), Matched::No);
        assert_eq!(matched(&[&failing, &no]), Matched::No);
        assert!(matches!(matched(&[&failing, &yes]), Matched::Failed(_)));
        assert!(Condition::new("bad", "object.").is_err());
    }
}
