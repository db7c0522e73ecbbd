//! Writes an intent into a manifest, and what the intent needs.
//!
//! The text is changed in the few places that it takes; comments and order stay. Afterwards it is read
//! again: it must say what it said and what was added, or it is not handed out.

mod edit;
mod intent;

pub use intent::{Claim, Disruption, Wish};

use anyhow::{Context as _, bail, ensure};
use serde_json::{Value, json};
use statefulset_scheduling_core::api::{Carrier, SCHEDULING_ANNOTATION};

use crate::tape::{Kind, NodeId, Tape};
use edit::Edit;

/// The StatefulSet that is edited, and what is wished for it.
struct Editor<'a> {
    tape: &'a Tape,
    edit: Edit<'a>,
    /// What the object is to say afterwards.
    expected: Value,
    changes: Vec<String>,
}

/// A text that was changed.
#[derive(Debug)]
pub struct Edited {
    /// The text.
    pub text: String,
    /// What was changed.
    pub changes: Vec<String>,
}

/// Writes an intent into the StatefulSet `object` of a document.
///
/// # Errors
/// It has one already, or is written in a way that cannot be edited.
pub fn opt_in(source: &str, tape: &Tape, object: NodeId, wish: &Wish, carrier: Carrier) -> anyhow::Result<Edited> {
    let expected: Value = serde_json::from_str(&tape.json(object)).context("the document cannot be read")?;
    let has = |pointer: &str| expected.pointer(pointer).is_some_and(|value| !value.is_null());
    ensure!(!has("/spec/scheduling"), "it has an intent already, in spec.scheduling");
    let annotation = format!("/metadata/annotations/{}", SCHEDULING_ANNOTATION.replace('/', "~1"));
    ensure!(!has(&annotation), "it has an intent already, in the annotation {SCHEDULING_ANNOTATION}");
    let index = tape.objects().iter().position(|candidate| *candidate == object).unwrap_or_default();
    let mut editor = Editor { tape, edit: Edit::new(source, tape), expected, changes: Vec::new() };
    let metadata = editor.map(object, "metadata")?;
    let spec = editor.map(object, "spec")?;
    match carrier {
        Carrier::Annotation => editor.annotation(metadata, wish)?,
        Carrier::Field => editor.field(spec, wish),
    }
    if wish.gang {
        editor.parallel(spec)?;
    }
    if !wish.claims.is_empty() {
        editor.claims(spec, wish)?;
    }
    let Editor { edit, expected, changes, .. } = editor;
    let text = edit.apply();
    let mut read = Tape::default();
    let unreadable = "it is written in a way that cannot be edited; write the intent by hand";
    read.read(&text).ok().context(unreadable)?;
    let found = read.objects().get(index).map(|object| serde_json::from_str::<Value>(&read.json(*object)));
    ensure!(matches!(found, Some(Ok(value)) if value == expected), unreadable);
    Ok(Edited { text, changes })
}

impl Editor<'_> {
    /// A member that must be a map, with its key.
    fn map(&self, parent: NodeId, name: &str) -> anyhow::Result<(NodeId, NodeId)> {
        let (key, value) = self.tape.member(parent, name).with_context(|| format!("it has no {name}"))?;
        match self.tape.node(value).map(|node| node.kind) {
            Some(Kind::Map) => Ok((key, value)),
            Some(Kind::Alias(_)) => bail!("its {name} is an alias; write the intent by hand"),
            _ => bail!("its {name} is no map"),
        }
    }

    fn annotation(&mut self, metadata: (NodeId, NodeId), wish: &Wish) -> anyhow::Result<()> {
        let mut lines = wish.lines();
        let mut text = lines.join("\n") + "\n";
        if lines.is_empty() {
            "{}".clone_into(&mut text);
            lines.push(format!("{SCHEDULING_ANNOTATION}: \"{{}}\""));
        } else {
            lines = nest(&format!("{SCHEDULING_ANNOTATION}: |"), lines);
        }
        let annotations = self.tape.member(metadata.1, "annotations");
        let in_brackets = match annotations {
            None => self.edit.is_flow(metadata.1),
            Some((_, value)) => {
                self.edit.is_flow(value)
                    && (self.edit.is_flow(metadata.1) || self.tape.children(value).next().is_some())
            }
        };
        if in_brackets {
            text = wish.value().to_string();
        }
        let value = Value::from(text);
        match annotations {
            None => {
                let map = json!({SCHEDULING_ANNOTATION: value});
                self.edit.add(metadata, ("annotations", &map), &nest("annotations:", lines), &["name", "generateName"]);
            }
            Some(annotations) => {
                let kind = self.tape.node(annotations.1).map(|node| node.kind);
                ensure!(
                    !matches!(kind, Some(Kind::Alias(_))),
                    "its annotations are an alias; write the intent by hand"
                );
                self.edit.add(annotations, (SCHEDULING_ANNOTATION, &value), &lines, &[]);
            }
        }
        self.expected["metadata"]["annotations"][SCHEDULING_ANNOTATION] = value;
        self.changes.push(format!("added {}", Carrier::Annotation.path()));
        Ok(())
    }

    fn field(&mut self, spec: (NodeId, NodeId), wish: &Wish) {
        let lines = wish.lines();
        let lines = if lines.is_empty() { vec!["scheduling: {}".to_owned()] } else { nest("scheduling:", lines) };
        let value = wish.value();
        self.edit.add(spec, ("scheduling", &value), &lines, &["podManagementPolicy", "replicas", "serviceName"]);
        self.expected["spec"]["scheduling"] = value;
        self.changes.push(format!("added {}", Carrier::Field.path()));
    }

    /// A gang needs all of its pods at once.
    fn parallel(&mut self, spec: (NodeId, NodeId)) -> anyhow::Result<()> {
        const PARALLEL: &str = "Parallel";
        let value = Value::from(PARALLEL);
        match self.tape.value(spec.1, "podManagementPolicy") {
            None => {
                let lines = [format!("podManagementPolicy: {PARALLEL}")];
                self.edit.add(spec, ("podManagementPolicy", &value), &lines, &["replicas", "serviceName"]);
                self.changes.push(format!("added spec.podManagementPolicy: {PARALLEL}, which a gang needs"));
            }
            Some(node) => {
                let old = self.tape.text(node).unwrap_or_default();
                if old == PARALLEL {
                    return Ok(());
                }
                let kind = self.tape.node(node).map(|node| node.kind);
                ensure!(matches!(kind, Some(Kind::Scalar(_))), "its podManagementPolicy is no text");
                let new = if self.edit.is_flow(spec.1) { value.to_string() } else { PARALLEL.to_owned() };
                self.edit.replace(node, &new);
                self.changes
                    .push(format!("changed spec.podManagementPolicy from {old} to {PARALLEL}, which a gang needs"));
            }
        }
        self.expected["spec"]["podManagementPolicy"] = value;
        Ok(())
    }

    /// Pods use a shared claim by an entry of the same name and source.
    fn claims(&mut self, spec: (NodeId, NodeId), wish: &Wish) -> anyhow::Result<()> {
        let template = self.map(spec.1, "template")?;
        let pod = self.map(template.1, "spec")?;
        let list = self.tape.member(pod.1, "resourceClaims");
        let names: Vec<_> = list
            .map(|(_, list)| self.tape.children(list).filter_map(|claim| self.tape.text_of(claim, "name")).collect())
            .unwrap_or_default();
        let missing: Vec<_> = wish.claims.iter().filter(|claim| !names.contains(&claim.name.as_str().into())).collect();
        if missing.is_empty() {
            return Ok(());
        }
        match list {
            None => {
                let lines: Vec<_> = missing.iter().flat_map(|claim| claim.lines()).collect();
                let lines: Vec<_> = std::iter::once("resourceClaims:".to_owned()).chain(lines).collect();
                let value: Value = missing.iter().map(|claim| claim.value()).collect();
                self.edit.add(pod, ("resourceClaims", &value), &lines, &[]);
            }
            Some(list) => {
                for claim in &missing {
                    self.edit.add_item(list, &claim.value(), &claim.lines());
                }
            }
        }
        let entries = &mut self.expected["spec"]["template"]["spec"]["resourceClaims"];
        let mut all: Vec<Value> = missing.iter().map(|claim| claim.value()).collect();
        all.extend(entries.as_array().into_iter().flatten().cloned());
        *entries = Value::Array(all);
        for claim in missing {
            self.changes.push(format!(
                "added the claim {} to spec.template.spec.resourceClaims; containers use it by resources.claims",
                claim.name
            ));
        }
        Ok(())
    }
}

/// Lines one level below a first one.
fn nest(first: &str, lines: Vec<String>) -> Vec<String> {
    std::iter::once(first.to_owned()).chain(lines.into_iter().map(|line| format!("  {line}"))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edit(source: &str, wish: &Wish, carrier: Carrier) -> anyhow::Result<Edited> {
        let mut tape = Tape::default();
        tape.read(source).unwrap();
        let object = tape.objects()[0];
        opt_in(source, &tape, object, wish, carrier)
    }

    fn gang() -> Wish {
        Wish { gang: true, ..Wish::default() }
    }

    fn everything() -> Wish {
        let claim = |name: &str| Claim { name: name.to_owned(), template: format!("{name}-template") };
        Wish {
            gang: true,
            topology: Some("topology.kubernetes.io/zone".to_owned()),
            disruption: Some(Disruption::All),
            claims: vec![claim("a"), claim("b")],
        }
    }

    #[test]
    fn what_is_there_stays_as_it_is() {
        let source = "# top\nkind: StatefulSet\nmetadata: # m\n  # who\n  name: web   # the name\n  labels: {a: b}\nspec:\n  \
                      # how many\n  replicas: 3\n  template:\n    spec:\n      # what\n      containers: []\n";
        let edited = edit(source, &everything(), Carrier::Annotation).unwrap();
        let kept: Vec<_> = source.lines().collect();
        let mut lines = edited.text.lines();
        for line in kept {
            assert!(lines.any(|other| other == line), "{line} is gone or has moved:\n{}", edited.text);
        }
        assert_eq!(edited.changes.len(), 4);
    }

    #[test]
    fn each_way_to_write_a_manifest_is_edited_in_its_own_way() {
        let body = "spec: {replicas: 1, template: {spec: {}}}\n";
        for metadata in [
            "metadata:\n  name: a\n",
            "metadata:\n  name: a\n  annotations:\n    x: y\n",
            "metadata:\n  name: a\n  annotations: {}\n",
            "metadata:\n  name: a\n  annotations:\n",
            "metadata:\n  name: a\n  annotations: null # none\n",
            "metadata:\n  name: a\n  annotations: {x: y}\n",
            "metadata: {name: a}\n",
            "metadata: {name: a, annotations: {}}\n",
            "metadata:\n    labels: {}\n",
        ] {
            for wish in [Wish::default(), gang(), everything()] {
                for carrier in [Carrier::Annotation, Carrier::Field] {
                    let source = format!("{metadata}{body}");
                    edit(&source, &wish, carrier).unwrap_or_else(|error| panic!("{source}: {error}"));
                    edit(source.trim_end(), &wish, carrier).unwrap();
                    edit(&source.replace('\n', "\r\n"), &wish, carrier).unwrap();
                }
            }
        }
        for spec in [
            "spec:\n  podManagementPolicy: OrderedReady # why\n  template:\n    spec:\n      resourceClaims:\n      - name: z\n",
            "spec:\n  podManagementPolicy: \"OrderedReady\"\n  template:\n    spec:\n      resourceClaims:\n        # first\n        - name: b\n          x: y\n",
            "spec:\n  serviceName: x\n  template:\n    spec:\n      resourceClaims: []\n",
            "spec:\n  template: {spec: {resourceClaims: [{name: z}]}}\n",
            "spec:\n  template:\n    spec:\n      containers:\n      - name: c",
        ] {
            for carrier in [Carrier::Annotation, Carrier::Field] {
                let source = format!("metadata:\n  name: a\n{spec}");
                edit(&source, &everything(), carrier).unwrap_or_else(|error| panic!("{source}: {error}"));
            }
        }
        let json =
            serde_json::to_string_pretty(&json!({"metadata": {"name": "a"}, "spec": {"template": {"spec": {}}}}));
        let edited = edit(&json.unwrap(), &everything(), Carrier::Annotation).unwrap();
        assert!(serde_json::from_str::<Value>(&edited.text).is_ok(), "JSON stays JSON: {}", edited.text);
    }

    #[test]
    fn an_item_of_a_list_is_edited_in_its_place() {
        let source = "kind: List\nitems:\n- kind: StatefulSet\n  metadata:\n    name: a\n  spec:\n    replicas: 1\n- kind: Other\n";
        let edited = edit(source, &gang(), Carrier::Annotation).unwrap();
        assert!(edited.text.contains(
            "\n    annotations:\n      statefulset-scheduling.dev/scheduling: |\n        schedulingPolicy:\n"
        ));
    }

    #[test]
    fn what_cannot_be_edited_is_refused_and_not_broken() {
        for source in [
            "metadata: {name: a}\nspec: {scheduling: {}}\n",
            "metadata: {annotations: {statefulset-scheduling.dev/scheduling: x}}\nspec: {}\n",
            "metadata: {}\n",
            "metadata: 3\nspec: {}\n",
            "x: &x {name: a}\nmetadata: *x\nspec: {}\n",
            "metadata: {}\nspec: {podManagementPolicy: [1]}\n",
        ] {
            assert!(edit(source, &gang(), Carrier::Annotation).is_err(), "{source}");
        }
    }
}
