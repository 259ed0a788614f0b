// SPDX-License-Identifier: Apache-2.0
// Task boards under the names and addresses that clients of Wacht use.
use crate::http::{segment, Download, Http, Payload};
use crate::models::*;
use crate::Error;
use hyper::{Body, Method};
use serde::{de::DeserializeOwned, Serialize};
use serde_json::{json, Value};
use std::marker::PhantomData;

/// The boards of projects; a project is a workspace of the server.
pub struct ActorProjects {
    http: Http,
}

/// A request whose answer is a `T`.
pub struct Call<T> {
    http: Http,
    method: Method,
    path: String,
    payload: Result<Payload, Error>,
    gives: PhantomData<T>,
}

impl<T> Call<T> {
    pub(crate) fn get(http: &Http, path: String) -> Call<T> {
        Call { http: http.clone(), method: Method::GET, path, payload: Ok(Payload::None), gives: PhantomData }
    }

    pub(crate) fn post(http: &Http, path: String, fields: &impl Serialize) -> Call<T> {
        let payload = serde_json::to_value(fields).map(Payload::Json).map_err(Error::from);
        Call { http: http.clone(), method: Method::POST, path, payload, gives: PhantomData }
    }
}

impl<T: DeserializeOwned> Call<T> {
    pub async fn send(self) -> Result<T, Error> {
        self.http.json(self.method, &self.path, self.payload?).await
    }
}

/// A directory of /task, or of a thread's own files.
pub struct FetchFilesystem {
    http: Http,
    base: String,
    path: String,
    recursive: bool,
    cursor: Option<String>,
}

impl FetchFilesystem {
    pub(crate) fn new(http: &Http, base: String) -> FetchFilesystem {
        FetchFilesystem { http: http.clone(), base, path: String::new(), recursive: false, cursor: None }
    }

    /// "/task/artifacts" and "artifacts" are the same directory.
    pub fn path(mut self, path: &str) -> Self {
        self.path = path.into();
        self
    }

    /// Everything below it, too.
    pub fn recursive(mut self) -> Self {
        self.recursive = true;
        self
    }

    /// `next_cursor` of the page before.
    pub fn cursor(mut self, cursor: &str) -> Self {
        self.cursor = Some(cursor.into());
        self
    }

    pub async fn send(self) -> Result<Filesystem, Error> {
        let cursor = self.cursor.map_or_else(String::new, |cursor| format!("&cursor={}", segment(&cursor)));
        let path = format!("{}?path={}&recursive={}{}", self.base, segment(&self.path), self.recursive, cursor);
        self.http.json(Method::GET, &path, Payload::None).await
    }
}

/// The bytes of a file.
pub struct DownloadFile {
    http: Http,
    path: String,
    range: Option<String>,
}

impl DownloadFile {
    pub(crate) fn new(http: &Http, path: String) -> DownloadFile {
        DownloadFile { http: http.clone(), path, range: None }
    }

    /// `length` bytes from `offset` on.
    pub fn range(mut self, offset: u64, length: u64) -> Self {
        self.range = Some(format!("bytes={}-{}", offset, offset.saturating_add(length.max(1) - 1)));
        self
    }

    pub async fn send(self) -> Result<Download, Error> {
        self.http.download(&self.path, self.range).await
    }
}

/// Items of a board, the newest first.
pub struct ListItems {
    http: Http,
    path: String,
    query: Vec<String>,
}

impl ListItems {
    pub fn limit(mut self, limit: u32) -> Self {
        self.query.push(format!("limit={}", limit));
        self
    }

    pub fn cursor(mut self, cursor: &str) -> Self {
        self.query.push(format!("cursor={}", segment(cursor)));
        self
    }

    pub async fn send(self) -> Result<Page<ProjectTaskBoardItem>, Error> {
        self.http.json(Method::GET, &format!("{}?{}", self.path, self.query.join("&")), Payload::None).await
    }
}

/// A file that comes with an item or a comment.
pub struct Attachment {
    pub name: String,
    pub content_type: String,
    pub bytes: Vec<u8>,
}

impl ActorProjects {
    pub(crate) fn new(http: Http) -> ActorProjects {
        ActorProjects { http }
    }

    fn item(&self, project: &str, task: &str, rest: &str) -> String {
        format!("/ai/actor-projects/{}/board/items/{}{}", segment(project), segment(task), rest)
    }

    fn get<T>(&self, path: String) -> Call<T> {
        Call::get(&self.http, path)
    }

    fn post<T>(&self, path: String, fields: &impl Serialize) -> Call<T> {
        Call::post(&self.http, path, fields)
    }

    fn form<T>(&self, path: String, fields: &impl Serialize, files: &[Attachment]) -> Call<T> {
        let payload = serde_json::to_value(fields).map_err(Error::from).and_then(|fields| form(&fields, files));
        Call { http: self.http.clone(), method: Method::POST, path, payload, gives: PhantomData }
    }

    pub fn list_board_items(&self, project: &str) -> ListItems {
        ListItems { http: self.http.clone(), path: format!("/ai/actor-projects/{}/board/items", segment(project)), query: Vec::new() }
    }

    pub fn fetch_board_item(&self, project: &str, task: &str) -> Call<ProjectTaskBoardItem> {
        self.get(self.item(project, task, ""))
    }

    pub fn create_board_item(&self, project: &str, item: CreateProjectTaskBoardItemRequest) -> Call<ProjectTaskBoardItem> {
        self.post(format!("/ai/actor-projects/{}/board/items", segment(project)), &item)
    }

    pub fn create_board_item_with_attachments(&self, project: &str, item: CreateProjectTaskBoardItemRequest, files: &[Attachment]) -> Call<ProjectTaskBoardItem> {
        self.form(format!("/ai/actor-projects/{}/board/items", segment(project)), &item, files)
    }

    pub fn update_board_item(&self, project: &str, task: &str, change: UpdateProjectTaskBoardItemRequest) -> Call<ProjectTaskBoardItem> {
        self.post(self.item(project, task, "/update"), &change)
    }

    pub fn archive_board_item(&self, project: &str, task: &str) -> Call<ProjectTaskBoardItem> {
        self.post(self.item(project, task, "/archive"), &json!({}))
    }

    pub fn unarchive_board_item(&self, project: &str, task: &str) -> Call<ProjectTaskBoardItem> {
        self.post(self.item(project, task, "/unarchive"), &json!({}))
    }

    pub fn cancel_board_item(&self, project: &str, task: &str) -> Call<ProjectTaskBoardItem> {
        self.post(self.item(project, task, "/cancel"), &json!({}))
    }

    /// `{"answers": [{"question_id", "value"}]}` or `{"freeform_text"}`.
    pub fn answer_board_item(&self, project: &str, task: &str, answer: Value) -> Call<ProjectTaskBoardItem> {
        self.post(self.item(project, task, "/answer"), &answer)
    }

    /// `{"request_message_id", "approvals": [{"tool_name", "mode"}]}`.
    pub fn approve_board_item(&self, project: &str, task: &str, approval: Value) -> Call<ProjectTaskBoardItem> {
        self.post(self.item(project, task, "/approval"), &approval)
    }

    pub fn list_board_item_comments(&self, project: &str, task: &str) -> Call<Page<Comment>> {
        self.get(self.item(project, task, "/comments"))
    }

    pub fn create_board_item_comment(&self, project: &str, task: &str, body: &str, files: &[Attachment]) -> Call<Comment> {
        self.form(self.item(project, task, "/comments"), &json!({ "body": body }), files)
    }

    pub fn delegate_task(&self, project: &str, title: &str, description: &str, target_lane_thread_id: &str) -> Call<Value> {
        let fields = json!({ "title": title, "description": description, "target_lane_thread_id": target_lane_thread_id });
        self.post(format!("/ai/actor-projects/{}/board/items/delegate", segment(project)), &fields)
    }

    pub fn fetch_board_item_filesystem(&self, project: &str, task: &str) -> FetchFilesystem {
        FetchFilesystem::new(&self.http, self.item(project, task, "/filesystem"))
    }

    pub fn fetch_board_item_filesystem_file(&self, project: &str, task: &str, path: &str) -> Call<FilesystemFile> {
        self.get(format!("{}?path={}", self.item(project, task, "/filesystem/file"), segment(path)))
    }

    pub fn download_board_item_filesystem_file(&self, project: &str, task: &str, path: &str) -> DownloadFile {
        DownloadFile::new(&self.http, format!("{}?path={}", self.item(project, task, "/filesystem/download"), segment(path)))
    }
}

/// multipart/form-data: text as it is, other values as JSON, files in the field "attachments".
fn form(fields: &Value, files: &[Attachment]) -> Result<Payload, Error> {
    let boundary = boundary_for(files);
    let mut body = Vec::new();
    let mut part = |head: String, bytes: &[u8]| {
        body.extend_from_slice(format!("--{}\r\nContent-Disposition: form-data; {}\r\n\r\n", boundary, head).as_bytes());
        body.extend_from_slice(bytes);
        body.extend_from_slice(b"\r\n");
    };
    for (name, value) in fields.as_object().into_iter().flatten() {
        let text = value.as_str().map_or_else(|| value.to_string(), String::from);
        part(format!("name=\"{}\"", name), text.as_bytes());
    }
    for file in files {
        if file.content_type.chars().any(char::is_control) {
            return Err(Error::Address(format!("the type of \"{}\" has a control character", file.name)));
        }
        let name: String = file.name.chars().map(|c| if c.is_control() || c == '"' || c == '\\' { '_' } else { c }).collect();
        part(format!("name=\"attachments\"; filename=\"{}\"\r\nContent-Type: {}", name, file.content_type), &file.bytes);
    }
    body.extend_from_slice(format!("--{}--\r\n", boundary).as_bytes());
    Ok(Payload::Raw(format!("multipart/form-data; boundary={}", boundary), Body::from(body)))
}

/// A line that is in none of the files.
fn boundary_for(files: &[Attachment]) -> String {
    let mut number = 0u64;
    loop {
        let boundary = format!("stead-{:016x}", number);
        if !files.iter().any(|file| file.bytes.windows(boundary.len()).any(|part| part == boundary.as_bytes())) {
            return boundary;
        }
        number = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    }
}
