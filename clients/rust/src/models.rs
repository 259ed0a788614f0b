// SPDX-License-Identifier: Apache-2.0
//! What requests and answers consist of. Members that this version does not know are ignored.
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

#[derive(Clone, Debug, Deserialize)]
pub struct FilesystemEntry {
    pub name: String,
    /// "file" or "directory"
    pub kind: String,
    #[serde(default)]
    pub size_bytes: u64,
    pub modified_at: Option<String>,
}

#[derive(Clone, Debug, Deserialize)]
pub struct Filesystem {
    pub entries: Vec<FilesystemEntry>,
    #[serde(default)]
    pub mounts: Vec<ScheduleMount>,
    #[serde(default)]
    pub has_more: bool,
    pub next_cursor: Option<String>,
}

/// A file as text, or as base64 when it is not text.
#[derive(Clone, Debug, Deserialize)]
pub struct FilesystemFile {
    pub path: String,
    pub name: String,
    pub mime_type: String,
    pub is_text: bool,
    pub size_bytes: u64,
    #[serde(default)]
    pub truncated: bool,
    pub content: Option<String>,
    pub content_base64: Option<String>,
}

/// Another store, shown below /task.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub struct ScheduleMount {
    pub mount_path: String,
    #[serde(default)]
    pub s3_relative_key: String,
    /// "ro" or "rw"
    #[serde(default)]
    pub mode: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
}

/// What must be true of the files before the item counts as completed.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub struct Check {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_size: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub json_schema: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub matches: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
}

#[derive(Clone, Debug, Default, Serialize)]
pub struct CreateProjectTaskBoardItemRequest {
    pub title: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// "urgent", "high", "neutral" or "low"
    #[serde(skip_serializing_if = "Option::is_none")]
    pub priority: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub child_of: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mounts: Option<Vec<ScheduleMount>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub checks: Option<Vec<Check>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Map<String, Value>>,
}

#[derive(Clone, Debug, Default, Serialize)]
pub struct UpdateProjectTaskBoardItemRequest {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub priority: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result_summary: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub artifacts: Option<Vec<Artifact>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub findings: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cautions: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub struct Artifact {
    pub path: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    #[serde(skip_serializing)]
    pub size_bytes: Option<u64>,
    #[serde(skip_serializing)]
    pub sha256: Option<String>,
}

#[derive(Clone, Debug, Deserialize)]
pub struct CheckResult {
    pub path: Option<String>,
    pub check: String,
    pub ok: bool,
    pub detail: Option<String>,
    pub exit_code: Option<i64>,
}

#[derive(Clone, Debug, Deserialize)]
pub struct Deliverable {
    pub at: String,
    pub result_summary: String,
    #[serde(default)]
    pub artifacts: Vec<Artifact>,
    #[serde(default)]
    pub checks: Vec<CheckResult>,
    pub findings: Option<String>,
    pub cautions: Option<String>,
    pub next: Option<String>,
}

#[derive(Clone, Debug, Deserialize)]
pub struct ProjectTaskBoardItem {
    pub id: String,
    pub board_id: String,
    pub task_key: String,
    pub title: String,
    pub description: Option<String>,
    pub status: String,
    pub priority: String,
    #[serde(default)]
    pub metadata: Map<String, Value>,
    pub created_at: String,
    pub updated_at: String,
    pub completed_at: Option<String>,
    pub archived_at: Option<String>,
    #[serde(default)]
    pub state_version: u64,
    #[serde(default)]
    pub deliverables: Vec<Deliverable>,
    #[serde(default)]
    pub mounts: Vec<ScheduleMount>,
    pub pending_question: Option<Value>,
    pub pending_approval: Option<Value>,
}

#[derive(Clone, Debug, Deserialize)]
pub struct Comment {
    pub id: String,
    pub body: String,
    pub created_at: String,
    pub resolved_at: Option<String>,
    pub resolution_summary: Option<String>,
    #[serde(default)]
    pub metadata: Map<String, Value>,
}

#[derive(Clone, Debug, Deserialize)]
pub struct Page<T> {
    pub data: Vec<T>,
    #[serde(default)]
    pub has_more: bool,
    pub next_cursor: Option<String>,
}

/// A lane of the board, or a conversation.
#[derive(Clone, Debug, Deserialize)]
pub struct AgentThread {
    pub id: String,
    pub title: String,
    pub project_id: String,
    pub thread_purpose: String,
    /// "idle", "running", "waiting_for_input", "interrupted", "completed" or "failed"
    pub status: String,
    pub responsibility: Option<String>,
    pub system_instructions: Option<String>,
    /// Why a run has failed.
    pub execution_state: Option<Value>,
}

#[derive(Clone, Debug, Default, Serialize)]
pub struct CreateAgentThreadRequest {
    pub title: String,
    /// Without it the thread is a conversation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub thread_purpose: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub responsibility: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub system_instructions: Option<String>,
}

#[derive(Clone, Debug, Deserialize)]
pub struct ThreadMessage {
    pub id: String,
    pub thread_id: String,
    pub timestamp: String,
    /// "user_message" or "agent_response"
    pub message_type: String,
    pub content: Value,
}

/// The answer to a run: it was taken, and goes on by itself.
#[derive(Clone, Debug, Deserialize)]
pub struct ExecuteAgentResponse {
    pub status: String,
}
