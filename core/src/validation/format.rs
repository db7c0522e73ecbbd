//! The formats of names in the API, with the API server's words for what is wrong with one.

const LABEL_LENGTH: usize = 63;
const SUBDOMAIN_LENGTH: usize = 253;

const LABEL: &str = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must \
    start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is \
    '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
const SUBDOMAIN: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', \
    and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is \
    '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
const QUALIFIED_NAME: &str = "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an \
    alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is \
    '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";

/// What keeps `value` from being a DNS label (`k8s-short-name`).
pub(super) fn short_name(value: &str) -> Vec<String> {
    let mut problems = Vec::new();
    if value.len() > LABEL_LENGTH {
        problems.push(format!("must be no more than {LABEL_LENGTH} bytes"));
    }
    if !is_label(value) {
        let problem = if is_subdomain(value) { "must not contain dots" } else { LABEL };
        problems.push(problem.to_owned());
    }
    problems
}

/// What keeps `value` from being a DNS subdomain (`k8s-long-name`).
pub(super) fn long_name(value: &str) -> Vec<String> {
    let mut problems = Vec::new();
    if value.len() > SUBDOMAIN_LENGTH {
        problems.push(format!("must be no more than {SUBDOMAIN_LENGTH} bytes"));
    }
    if !is_subdomain(value) {
        problems.push(SUBDOMAIN.to_owned());
    }
    problems
}

/// What keeps `value` from being the key of a label (`k8s-label-key`).
pub(super) fn label_key(value: &str) -> Vec<String> {
    let mut problems = Vec::new();
    let name = match value.split_once('/') {
        None => value,
        Some((_, name)) if name.contains('/') => {
            return vec![format!(
                "a valid label key {QUALIFIED_NAME} with an optional DNS subdomain prefix and '/' (e.g. \
                 'example.com/MyName')"
            )];
        }
        Some((prefix, name)) => {
            if prefix.is_empty() {
                problems.push("prefix part must be non-empty".to_owned());
            } else {
                problems.extend(long_name(prefix).iter().map(|problem| format!("prefix part {problem}")));
            }
            name
        }
    };
    if name.is_empty() {
        problems.push("name part must be non-empty".to_owned());
    } else if name.len() > LABEL_LENGTH {
        problems.push(format!("name part must be no more than {LABEL_LENGTH} bytes"));
    }
    if !is_qualified_name(name) {
        problems.push(format!("name part {QUALIFIED_NAME}"));
    }
    problems
}

fn is_label(value: &str) -> bool {
    let alphanumeric = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    is_framed(value, alphanumeric, |byte| alphanumeric(byte) || byte == b'-')
}

fn is_subdomain(value: &str) -> bool {
    value.split('.').all(is_label)
}

fn is_qualified_name(value: &str) -> bool {
    is_framed(
        value,
        |byte| byte.is_ascii_alphanumeric(),
        |byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.'),
    )
}

/// Whether `value` has an `edge` byte at both ends and only `inner` bytes between.
fn is_framed(value: &str, edge: impl Fn(u8) -> bool, inner: impl Fn(u8) -> bool) -> bool {
    let bytes = value.as_bytes();
    bytes.first().is_some_and(|&byte| edge(byte))
        && bytes.last().is_some_and(|&byte| edge(byte))
        && bytes.iter().all(|&byte| inner(byte))
}
