// SPDX-License-Identifier: Apache-2.0
// Requests and answers: the only file that knows hyper.
use crate::Error;
use hyper::{client::HttpConnector, header, Body, Method, Request, Response};
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::fmt::Write;

/// An answer with a description is at most this long.
const JSON_MAX: usize = 64 << 20;

/// A file as the server sends it.
#[derive(Debug)]
pub struct Download {
    /// A stream of bytes, read as they arrive.
    pub body: Body,
    pub content_type: Option<String>,
    /// The number of bytes of `body`, if the server says it.
    pub size: Option<u64>,
    /// The version of the file, for a conditional write.
    pub version: Option<String>,
}

impl Download {
    /// All of it, at most `max` bytes.
    pub async fn bytes(self, max: usize) -> Result<Vec<u8>, Error> {
        read_all(self.body, max).await
    }
}

#[derive(Clone)]
pub(crate) struct Http {
    base: String,
    token: Option<String>,
    client: hyper::Client<HttpConnector>,
}

/// What a request carries.
pub(crate) enum Payload {
    None,
    Json(Value),
    Raw(String, Body),
}

impl Http {
    pub fn new(url: &str) -> Result<Http, Error> {
        let base = url.trim_end_matches('/');
        let parsed: hyper::Uri = base.parse().map_err(|_| Error::Address(format!("\"{}\" is not an address", url)))?;
        if parsed.scheme_str() != Some("http") || parsed.host().is_none() {
            return Err(Error::Address(format!("\"{}\" is not an address such as http://127.0.0.1:7777", url)));
        }
        Ok(Http { base: base.into(), token: None, client: hyper::Client::new() })
    }

    pub fn set_token(&mut self, token: &str) {
        self.token = Some(token.into());
    }

    /// Sends, and gives the answer if it is a good one.
    pub async fn send(&self, method: Method, path: &str, payload: Payload, headers: &[(header::HeaderName, String)]) -> Result<Response<Body>, Error> {
        let mut request = Request::builder().method(method).uri(format!("{}{}", self.base, path));
        if let Some(token) = &self.token {
            request = request.header(header::AUTHORIZATION, format!("Bearer {}", token));
        }
        for (name, value) in headers {
            request = request.header(name, value);
        }
        let body = match payload {
            Payload::None => Body::empty(),
            Payload::Json(value) => {
                request = request.header(header::CONTENT_TYPE, "application/json");
                Body::from(value.to_string())
            }
            Payload::Raw(kind, body) => {
                request = request.header(header::CONTENT_TYPE, kind);
                body
            }
        };
        let request = request.body(body).map_err(|error| Error::Address(error.to_string()))?;
        let answer = self.client.request(request).await?;
        if answer.status().is_success() {
            return Ok(answer);
        }
        Err(refusal(answer).await)
    }

    pub async fn json<T: DeserializeOwned>(&self, method: Method, path: &str, payload: Payload) -> Result<T, Error> {
        let answer = self.send(method, path, payload, &[]).await?;
        Ok(serde_json::from_slice(&read_all(answer.into_body(), JSON_MAX).await?)?)
    }

    pub async fn download(&self, path: &str, range: Option<String>) -> Result<Download, Error> {
        let headers: Vec<_> = range.into_iter().map(|range| (header::RANGE, range)).collect();
        let answer = self.send(Method::GET, path, Payload::None, &headers).await?;
        let text = |name| answer.headers().get(name).and_then(|value: &header::HeaderValue| value.to_str().ok()).map(String::from);
        Ok(Download {
            content_type: text(header::CONTENT_TYPE),
            size: text(header::CONTENT_LENGTH).and_then(|size| size.parse().ok()),
            version: version_of(&answer),
            body: answer.into_body(),
        })
    }
}

/// The version in an ETag, without its quotes.
pub(crate) fn version_of(answer: &Response<Body>) -> Option<String> {
    Some(answer.headers().get(header::ETAG)?.to_str().ok()?.trim_matches('"').into())
}

async fn refusal(answer: Response<Body>) -> Error {
    let status = answer.status().as_u16();
    let bytes = read_all(answer.into_body(), JSON_MAX).await.unwrap_or_default();
    let problem: Value = serde_json::from_slice(&bytes).unwrap_or_default();
    Error::Refused {
        status,
        kind: problem["kind"].as_str().unwrap_or_default().into(),
        message: problem["detail"].as_str().or_else(|| problem["title"].as_str()).map_or_else(|| format!("the server answered {}", status), String::from),
    }
}

async fn read_all(mut body: Body, max: usize) -> Result<Vec<u8>, Error> {
    use hyper::body::HttpBody;
    let mut all = Vec::new();
    while let Some(part) = body.data().await {
        let part = part?;
        if all.len() + part.len() > max {
            return Err(Error::Answer(format!("it has more than {} bytes; read the stream instead", max)));
        }
        all.extend_from_slice(&part);
    }
    Ok(all)
}

/// A part of a path: everything but letters, digits and "-._~" is escaped, '/' too.
pub(crate) fn segment(text: &str) -> String {
    escape(text, "-._~")
}

/// A path of a file, whose '/' stay.
pub(crate) fn file_path(text: &str) -> String {
    escape(text.trim_start_matches('/'), "-._~/")
}

fn escape(text: &str, plain: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || plain.as_bytes().contains(&byte) {
            out.push(byte as char);
        } else {
            write!(out, "%{:02X}", byte).expect("a string takes all that is written");
        }
    }
    out
}
