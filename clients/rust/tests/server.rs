// SPDX-License-Identifier: Apache-2.0
// The client against a running server: STEAD is the program. All facts share one server.
use serde_json::json;
use stead::models::{Check, CreateAgentThreadRequest, CreateProjectTaskBoardItemRequest, ScheduleMount, UpdateProjectTaskBoardItemRequest};
use stead::{Attachment, Client};
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

type Outcome = Result<(), Box<dyn std::error::Error>>;

struct Server {
    process: Child,
    dir: std::path::PathBuf,
    client: Client,
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
        let _ = std::fs::remove_dir_all(&self.dir);
    }
}

fn stead(dir: &std::path::Path, args: &[&str]) -> Command {
    let mut command = Command::new(std::env::var("STEAD").expect("STEAD names the program"));
    command.args(args).env("STEAD_STORE", format!("disk:{}/store", dir.display()));
    command
}

fn serve() -> Result<Server, Box<dyn std::error::Error>> {
    let dir = std::env::temp_dir().join(format!("stead-rust-{}", std::process::id()));
    std::fs::create_dir_all(dir.join("demos/2026-q2"))?;
    std::fs::write(dir.join("demos/2026-q2/demo-recording.mp4"), "film")?;
    assert!(stead(&dir, &["init", "research"]).output()?.status.success());
    std::fs::write(dir.join("store/research/agent.yaml"), format!("boards: {{mounts: {{default: {{url: 'disk:{}'}}}}}}\n", dir.display()))?;
    let mut process = stead(&dir, &["serve", "--json", "--open", "--listen", "127.0.0.1:0"]).stdout(Stdio::piped()).spawn()?;
    let mut line = String::new();
    BufReader::new(process.stdout.take().expect("a pipe")).read_line(&mut line)?;
    let url = serde_json::from_str::<serde_json::Value>(&line)?["url"].as_str().expect("an address").to_string();
    Ok(Server { process, dir, client: Client::new(&url)? })
}

async fn an_item_goes_from_its_brief_to_a_checked_deliverable(client: &Client) -> Outcome {
    let ai = client.ai();
    let projects = ai.actor_projects();
    let item = projects
        .create_board_item_with_attachments(
            "research",
            CreateProjectTaskBoardItemRequest {
                title: "Compare the drafts".into(),
                description: Some("Say which one is better.".into()),
                checks: Some(vec![Check { path: Some("artifacts/report.md".into()), ..Default::default() }]),
                ..Default::default()
            },
            &[Attachment { name: "draft \"1\".txt".into(), content_type: "text/plain".into(), bytes: b"draft".to_vec() }],
        )
        .send()
        .await?;
    assert_eq!(item.metadata["attachments"][0]["size_bytes"], 5);
    let done = || {
        let artifact = serde_json::from_value(json!({ "path": "/task/artifacts/report.md" })).expect("an artifact");
        projects
            .update_board_item(
                "research",
                &item.id,
                UpdateProjectTaskBoardItemRequest {
                    status: Some("completed".into()),
                    result_summary: Some("The second draft is better; the report says why.".into()),
                    artifacts: Some(vec![artifact]),
                    ..Default::default()
                },
            )
            .send()
    };
    let refused = done().await.expect_err("the report is missing");
    assert_eq!(refused.kind(), "invalid");
    assert!(refused.to_string().contains("does not exist"), "{}", refused);
    client.workspace("research").tool("item_write", json!({ "item": item.id, "path": "artifacts/report.md", "content": "# Report\n" })).await?;
    let item = done().await?;
    let latest = item.deliverables.last().expect("a deliverable");
    assert_eq!(latest.artifacts[0].sha256.as_ref().map(String::len), Some(64));
    assert!(latest.checks.iter().all(|check| check.ok));
    assert_eq!(projects.list_board_items("research").limit(1).send().await?.data[0].id, item.id);
    Ok(())
}

async fn files_of_a_task_are_listed_and_streamed_from_a_mount(client: &Client) -> Outcome {
    let mount: ScheduleMount = serde_json::from_value(json!({
        "mount_path": "/task/source",
        "s3_relative_key": "demos/2026-q2/demo-recording.mp4",
        "mode": "ro",
    }))?;
    let item = client
        .ai()
        .actor_projects()
        .create_board_item(
            "research",
            CreateProjectTaskBoardItemRequest {
                title: "Annotate the demo footage".into(),
                description: Some("Mark up the demo recording with chapter markers.".into()),
                mounts: Some(vec![mount]),
                ..Default::default()
            },
        )
        .send()
        .await?;
    let result = client.ai().actor_projects().fetch_board_item_filesystem("research", &item.id).path("/task/source").send().await?;
    assert_eq!((result.entries[0].name.as_str(), result.entries[0].kind.as_str(), result.entries[0].size_bytes), ("demo-recording.mp4", "file", 4));
    let projects = client.ai().actor_projects();
    let file = projects.download_board_item_filesystem_file("research", &item.id, "/task/source/demo-recording.mp4").send().await?;
    assert_eq!(file.content_type.as_deref(), Some("video/mp4"));
    assert_eq!(file.bytes(100).await?, b"film");
    let part = projects.download_board_item_filesystem_file("research", &item.id, "source/demo-recording.mp4").range(1, 2).send().await?;
    assert_eq!(part.bytes(100).await?, b"il");
    let brief = projects.fetch_board_item_filesystem_file("research", &item.id, "/task/TASK.md").send().await?;
    assert!(brief.is_text && brief.content.expect("text").contains("chapter markers"));
    assert_eq!(projects.fetch_board_item_filesystem("research", &item.id).path("/task/none").send().await.expect_err("missing").kind(), "not_found");
    Ok(())
}

async fn comments_come_with_files_and_items_are_archived(client: &Client) -> Outcome {
    let projects = client.ai().actor_projects();
    let item = projects.create_board_item("research", CreateProjectTaskBoardItemRequest { title: "Talk".into(), ..Default::default() }).send().await?;
    let file = Attachment { name: "c.txt".into(), content_type: "text/plain".into(), bytes: b"stead-0000000000000000".to_vec() };
    let comment = projects.create_board_item_comment("research", &item.id, "Look at this", &[file]).send().await?;
    assert_eq!(comment.metadata["attachments"][0]["size_bytes"], 22);
    assert_eq!(projects.list_board_item_comments("research", &item.id).send().await?.data[0].body, "Look at this");
    assert!(projects.archive_board_item("research", &item.id).send().await?.archived_at.is_some());
    assert!(projects.unarchive_board_item("research", &item.id).send().await?.archived_at.is_none());
    assert_eq!(projects.cancel_board_item("research", &item.id).send().await?.status, "cancelled");
    Ok(())
}

async fn a_thread_is_reached_by_its_id_alone(client: &Client) -> Outcome {
    let threads = client.ai().actor_project_threads();
    let thread = threads.create_thread("research", CreateAgentThreadRequest { title: "Talk".into(), ..Default::default() }).send().await?;
    assert_eq!((thread.thread_purpose.as_str(), thread.status.as_str()), ("conversation", "idle"));
    let file = json!({ "name": "in.txt", "content": "ZmlsbQ==" });
    let run = json!({ "execution_type": { "new_message": { "message": "Look at this", "files": [file] } } });
    assert_eq!(threads.run_thread(&thread.id, run).send().await?.status, "queued");
    let top: Vec<_> = threads.fetch_filesystem(&thread.id).send().await?.entries.into_iter().map(|entry| entry.name).collect();
    assert_eq!(top, ["uploads", "workspace"]);
    let sent = threads.fetch_filesystem(&thread.id).path("/uploads").send().await?.entries.remove(0);
    let file = threads.fetch_filesystem_file(&thread.id, &format!("/uploads/{}", sent.name)).send().await?;
    assert_eq!(file.content_type.as_deref(), Some("text/plain; charset=utf-8"));
    assert_eq!(file.bytes(100).await?, b"film");
    assert_eq!(threads.fetch_thread(&thread.id).send().await?.project_id, "research");
    threads.fetch_messages(&thread.id).limit(10).send().await?;
    assert_eq!(threads.fetch_thread("1882186246335063906").send().await.expect_err("unknown").kind(), "not_found");
    Ok(())
}

async fn files_of_a_workspace_are_written_on_condition(client: &Client) -> Outcome {
    let workspace = client.workspace("research");
    let version = workspace.write("notes/a b?.md", "# Plan", None).await?.expect("a version");
    assert_eq!(workspace.read("notes/a b?.md", Some((2, 3))).await?.bytes(10).await?, b"Pla");
    workspace.write("notes/a b?.md", "changed", Some(&version)).await?;
    assert_eq!(workspace.write("notes/a b?.md", "late", Some(&version)).await.expect_err("it changed").kind(), "conflict");
    assert_eq!(workspace.tool("grep", json!({ "pattern": "chang" })).await?["total_matches"], 1);
    workspace.delete("notes/a b?.md").await?;
    assert_eq!(workspace.read("notes/a b?.md", None).await.expect_err("it is gone").kind(), "not_found");
    assert!(Client::new("127.0.0.1:1").is_err() && Client::new("http://127.0.0.1:1").is_ok());
    Ok(())
}

#[test]
fn the_client_does_what_the_server_offers() -> Outcome {
    let server = serve()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        an_item_goes_from_its_brief_to_a_checked_deliverable(&server.client).await?;
        files_of_a_task_are_listed_and_streamed_from_a_mount(&server.client).await?;
        comments_come_with_files_and_items_are_archived(&server.client).await?;
        a_thread_is_reached_by_its_id_alone(&server.client).await?;
        files_of_a_workspace_are_written_on_condition(&server.client).await
    })
}
