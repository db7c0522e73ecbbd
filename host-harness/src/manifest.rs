//! Manifests as people write them: files of YAML or JSON with any number of documents of any kind.

use std::io::Read as _;
use std::path::Path;

use serde_json::{Value, json};
use thiserror::Error;

/// Why a file cannot be used.
#[derive(Debug, Error)]
pub enum Error {
    /// It cannot be read.
    #[error("{path}: {source}")]
    File {
        /// The file.
        path: String,
        /// Why not.
        source: std::io::Error,
    },
    /// It is no YAML.
    #[error("{path}: {message}")]
    Yaml {
        /// The file.
        path: String,
        /// What is wrong with it.
        message: String,
    },
    /// A document in it is no object of the Kubernetes API.
    #[error("{path}: document {document} is no Kubernetes object: it has no apiVersion and kind")]
    NoObject {
        /// The file.
        path: String,
        /// Which document, from 1.
        document: usize,
    },
}

/// An object of a manifest.
#[derive(Clone, Debug, PartialEq)]
pub struct Object {
    /// The object.
    pub value: Value,
}

impl Object {
    /// `apiVersion`
    pub fn api_version(&self) -> &str {
        self.value["apiVersion"].as_str().unwrap_or_default()
    }

    /// `kind`
    pub fn kind(&self) -> &str {
        self.value["kind"].as_str().unwrap_or_default()
    }

    /// `metadata.name`, or what the server makes one from.
    pub fn name(&self) -> &str {
        let metadata = &self.value["metadata"];
        metadata["name"].as_str().or_else(|| metadata["generateName"].as_str()).unwrap_or_default()
    }

    /// `metadata.namespace`; `default` where the manifest leaves it open.
    pub fn namespace(&self) -> &str {
        self.value["metadata"]["namespace"].as_str().unwrap_or("default")
    }

    /// Whether the policy reviews objects of this kind.
    pub fn is_statefulset(&self) -> bool {
        self.api_version() == "apps/v1" && self.kind() == "StatefulSet"
    }

    /// The request by which an API server asks about the creation of the object, or about its
    /// update from `old`.
    pub fn request(&self, old: Option<&Self>) -> Value {
        let (group, version) = self.api_version().split_once('/').unwrap_or(("", self.api_version()));
        let kind = json!({"group": group, "version": version, "kind": self.kind()});
        let resource =
            json!({"group": group, "version": version, "resource": format!("{}s", self.kind().to_lowercase())});
        let mut request = json!({
            "uid": "00000000-0000-0000-0000-000000000000",
            "kind": kind,
            "resource": resource,
            "requestKind": kind,
            "requestResource": resource,
            "name": self.name(),
            "namespace": self.namespace(),
            "operation": if old.is_some() { "UPDATE" } else { "CREATE" },
            "userInfo": {"username": "kubernetes-admin", "groups": ["system:authenticated"]},
            "object": self.value,
            "dryRun": true,
        });
        if let Some(old) = old {
            request["oldObject"] = old.value.clone();
        }
        request
    }
}

/// The objects of a file, `-` being the standard input. Empty documents are passed over, and Lists
/// are taken apart.
///
/// # Errors
/// The file cannot be read, is no YAML, or has a document that is no object.
pub fn read(path: &Path) -> Result<Vec<Object>, Error> {
    let name = path.display().to_string();
    let file = |source| Error::File { path: name.clone(), source };
    let mut text = String::new();
    if name == "-" {
        std::io::stdin().read_to_string(&mut text).map_err(file)?;
    } else {
        text = std::fs::read_to_string(path).map_err(file)?;
    }
    parse(&text, &name)
}

/// The objects of a text. `name` is what it is called in errors.
///
/// # Errors
/// The text is no YAML, or has a document that is no object.
pub fn parse(text: &str, name: &str) -> Result<Vec<Object>, Error> {
    let documents: Vec<Value> = serde_saphyr::from_multiple(text)
        .map_err(|error| Error::Yaml { path: name.to_owned(), message: error.to_string() })?;
    let mut objects = Vec::new();
    for (index, document) in documents.into_iter().enumerate() {
        if !document.is_null() {
            unpack(document, name, index + 1, &mut objects)?;
        }
    }
    Ok(objects)
}

fn unpack(value: Value, path: &str, document: usize, objects: &mut Vec<Object>) -> Result<(), Error> {
    let mut object = Object { value };
    if object.api_version().is_empty() || object.kind().is_empty() {
        return Err(Error::NoObject { path: path.to_owned(), document });
    }
    if let Some(items) = object.value.get_mut("items").and_then(Value::as_array_mut).map(std::mem::take) {
        return items.into_iter().try_for_each(|item| unpack(item, path, document, objects));
    }
    objects.push(object);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_manifest_may_have_many_documents_of_any_kind() {
        let text = "# a comment\n---\napiVersion: v1\nkind: Service\nmetadata: {name: a}\n---\n---\napiVersion: v1\n\
                    kind: List\nitems:\n- apiVersion: apps/v1\n  kind: StatefulSet\n  metadata: {generateName: b-}\n";
        let objects = parse(text, "x").unwrap();
        let names: Vec<_> =
            objects.iter().map(|object| (object.kind(), object.name(), object.is_statefulset())).collect();
        assert_eq!(names, [("Service", "a", false), ("StatefulSet", "b-", true)]);
    }

    #[test]
    fn what_is_no_manifest_is_refused_with_its_name() {
        for (text, message) in
            [("a: [", "x.yaml: "), ("a: 1", "x.yaml: document 1 is no Kubernetes object"), ("- 1", "document 1")]
        {
            let error = parse(text, "x.yaml").unwrap_err().to_string();
            assert!(error.contains(message), "{error}");
        }
    }
}
