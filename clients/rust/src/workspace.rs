// SPDX-License-Identifier: Apache-2.0
use crate::http::{file_path, segment, version_of, Download, Http, Payload};
use crate::Error;
use hyper::{header, Body, Method};
use serde_json::Value;

/// A workspace: its files and its tools.
pub struct Workspace {
    http: Http,
    base: String,
}

impl Workspace {
    pub(crate) fn new(http: Http, name: &str) -> Workspace {
        Workspace { http, base: format!("/v1/workspaces/{}", segment(name)) }
    }

    /// A file as a stream; `range` is (offset, length).
    pub async fn read(&self, path: &str, range: Option<(u64, u64)>) -> Result<Download, Error> {
        let range = range.map(|(offset, length)| format!("bytes={}-{}", offset, offset.saturating_add(length.max(1) - 1)));
        self.http.download(&self.file(path), range).await
    }

    /// Writes all of a file and gives its new version. With `if_version`, only if it still has that version: otherwise the
    /// error is of the kind "conflict".
    pub async fn write(&self, path: &str, body: impl Into<Body>, if_version: Option<&str>) -> Result<Option<String>, Error> {
        let headers: Vec<_> = if_version.into_iter().map(|version| (header::IF_MATCH, format!("\"{}\"", version))).collect();
        let payload = Payload::Raw("application/octet-stream".into(), body.into());
        Ok(version_of(&self.http.send(Method::PUT, &self.file(path), payload, &headers).await?))
    }

    pub async fn delete(&self, path: &str) -> Result<(), Error> {
        self.http.send(Method::DELETE, &self.file(path), Payload::None, &[]).await.map(|_| ())
    }

    /// Calls a tool with its arguments, and gives its structured result, or its text where it has none.
    pub async fn tool(&self, name: &str, arguments: Value) -> Result<Value, Error> {
        let path = format!("{}/tools/{}", self.base, segment(name));
        let mut answer: Value = self.http.json(Method::POST, &path, Payload::Json(arguments)).await?;
        let key = if answer.get("result").is_some() { "result" } else { "text" };
        Ok(answer[key].take())
    }

    fn file(&self, path: &str) -> String {
        format!("{}/files/{}", self.base, file_path(path))
    }
}
