//! Who makes a request.
//!
//! Stands for authentication and impersonation. Authorization is the embedder's: without it everybody may do
//! everything, and everybody may always impersonate.

use std::collections::BTreeMap;

use axum::http::{HeaderMap, header};
use serde_json::{Value, json};

/// The user whom a request without any credentials comes from.
pub const ADMIN: &str = "kubernetes-admin";

/// A user as admission and the log see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    /// The name: `system:serviceaccount:<namespace>:<name>` for a service account.
    pub username: String,
    /// The groups, in order.
    pub groups: Vec<String>,
}

impl User {
    /// The user of this name with the groups that such a user has at least.
    pub fn named(username: impl Into<String>) -> Self {
        let username = username.into();
        let mut groups = Vec::new();
        if let Some(account) = username.strip_prefix("system:serviceaccount:") {
            let namespace = account.split(':').next().unwrap_or_default();
            groups.push("system:serviceaccounts".to_owned());
            groups.push(format!("system:serviceaccounts:{namespace}"));
        } else if username.starts_with("system:node:") {
            groups.push("system:nodes".to_owned());
        } else if username == ADMIN {
            groups.push("system:masters".to_owned());
        }
        groups.push("system:authenticated".to_owned());
        Self { username, groups }
    }

    /// The `userInfo` of an admission request.
    pub(crate) fn info(&self) -> Value {
        json!({ "username": self.username, "groups": self.groups })
    }

    /// The user whom the headers of a request name; none for a token that nobody knows.
    pub(crate) fn of(headers: &HeaderMap, tokens: &BTreeMap<String, Self>) -> Option<Self> {
        let text = |value: &axum::http::HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
        if let Some(name) = headers.get("impersonate-user") {
            let mut user = Self::named(text(name));
            let groups: Vec<_> = headers.get_all("impersonate-group").iter().map(text).collect();
            if !groups.is_empty() {
                user.groups = groups;
                user.groups.push("system:authenticated".to_owned());
            }
            return Some(user);
        }
        let Some(authorization) = headers.get(header::AUTHORIZATION) else { return Some(Self::named(ADMIN)) };
        let authorization = text(authorization);
        let token = authorization.strip_prefix("Bearer ")?;
        tokens.get(token).cloned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(pairs: &[(&'static str, &str)]) -> Option<User> {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.append(*name, value.parse().expect("it is a header"));
        }
        User::of(&headers, &BTreeMap::from([("t".to_owned(), User::named("me"))]))
    }

    #[test]
    fn a_user_comes_from_the_header_the_token_or_is_the_administrator() {
        assert_eq!(of(&[]).expect("a user").username, ADMIN);
        assert_eq!(of(&[("authorization", "Bearer t")]).expect("a user").username, "me");
        assert_eq!(of(&[("authorization", "Bearer x")]), None);
        let kubelet = of(&[("impersonate-user", "system:node:a")]).expect("a user");
        assert_eq!(kubelet.groups, ["system:nodes", "system:authenticated"]);
        let account = of(&[("impersonate-user", "system:serviceaccount:kube-system:gc")]).expect("a user");
        assert_eq!(account.groups[1], "system:serviceaccounts:kube-system");
        let grouped = of(&[("impersonate-user", "a"), ("impersonate-group", "g")]).expect("a user");
        assert_eq!(grouped.groups, ["g", "system:authenticated"]);
    }
}
