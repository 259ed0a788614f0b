// SPDX-License-Identifier: Apache-2.0
// Threads of task boards under the names and addresses that clients of Wacht use.
use crate::actor_projects::{Call, DownloadFile, FetchFilesystem};
use crate::http::{segment, Http, Payload};
use crate::models::*;
use crate::Error;
use hyper::Method;
use serde_json::{json, Value};

/// Threads by their ids alone: the server finds the project.
pub struct ActorProjectThreads {
    http: Http,
}

/// The last messages of a thread, in order.
pub struct FetchMessages {
    http: Http,
    path: String,
    query: Vec<String>,
}

impl FetchMessages {
    pub fn limit(mut self, limit: u32) -> Self {
        self.query.push(format!("limit={}", limit));
        self
    }

    pub fn before_id(mut self, id: &str) -> Self {
        self.query.push(format!("before_id={}", segment(id)));
        self
    }

    pub fn after_id(mut self, id: &str) -> Self {
        self.query.push(format!("after_id={}", segment(id)));
        self
    }

    pub async fn send(self) -> Result<Page<ThreadMessage>, Error> {
        self.http.json(Method::GET, &format!("{}?{}", self.path, self.query.join("&")), Payload::None).await
    }
}

impl ActorProjectThreads {
    pub(crate) fn new(http: Http) -> ActorProjectThreads {
        ActorProjectThreads { http }
    }

    fn path(&self, thread: &str, rest: &str) -> String {
        format!("/ai/actor-project-threads/{}{}", segment(thread), rest)
    }

    pub fn create_thread(&self, project: &str, thread: CreateAgentThreadRequest) -> Call<AgentThread> {
        Call::post(&self.http, format!("/ai/actor-projects/{}/threads", segment(project)), &thread)
    }

    pub fn fetch_thread(&self, thread: &str) -> Call<AgentThread> {
        Call::get(&self.http, self.path(thread, ""))
    }

    pub fn fetch_messages(&self, thread: &str) -> FetchMessages {
        FetchMessages { http: self.http.clone(), path: self.path(thread, "/messages"), query: Vec::new() }
    }

    /// The thread's own files: /workspace and /uploads.
    pub fn fetch_filesystem(&self, thread: &str) -> FetchFilesystem {
        FetchFilesystem::new(&self.http, self.path(thread, "/filesystem"))
    }

    pub fn fetch_filesystem_file(&self, thread: &str, path: &str) -> DownloadFile {
        DownloadFile::new(&self.http, format!("{}?path={}", self.path(thread, "/filesystem/file"), segment(path)))
    }

    /// `{"execution_type": {"new_message": {"message"}}}`, or `approval_response`, or `cancel`.
    pub fn run_thread(&self, thread: &str, request: Value) -> Call<ExecuteAgentResponse> {
        Call::post(&self.http, self.path(thread, "/run"), &request)
    }

    /// A run with a message.
    pub fn send_message(&self, thread: &str, message: &str) -> Call<ExecuteAgentResponse> {
        self.run_thread(thread, json!({ "execution_type": { "new_message": { "message": message } } }))
    }
}
