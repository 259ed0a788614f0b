// SPDX-License-Identifier: Apache-2.0
//! A client of the Stead server: the files of a workspace, its tools, and its task boards.
//!
//! ```no_run
//! # async fn example() -> Result<(), stead::Error> {
//! let client = stead::Client::new("http://127.0.0.1:7777")?.token("stead_…");
//! let files = client.ai().actor_projects().fetch_board_item_filesystem("research", "482913").path("/task/artifacts").send().await?;
//! for entry in files.entries {
//!     println!("{} {}", entry.name, entry.size_bytes);
//! }
//! # Ok(())
//! # }
//! ```
//!
//! A call is a value: its options are methods, and `send()` makes the request. Bodies of files are streams, so a file of
//! any size needs little memory. The client speaks HTTP over TCP and needs a Tokio runtime.

mod actor_projects;
mod error;
mod http;
pub mod models;
mod threads;
mod workspace;

pub use actor_projects::{ActorProjects, Attachment, Call, DownloadFile, FetchFilesystem, ListItems};
pub use error::Error;
pub use http::Download;
pub use hyper::Body;
pub use threads::{ActorProjectThreads, FetchMessages};
pub use workspace::Workspace;

use http::Http;

/// A server and the token for it. Clones share their connections.
#[derive(Clone)]
pub struct Client {
    http: Http,
}

impl Client {
    /// `url` is the address that `stead serve` prints, such as `http://127.0.0.1:7777`.
    pub fn new(url: &str) -> Result<Client, Error> {
        Ok(Client { http: Http::new(url)? })
    }

    /// The bearer token of every request; a server that was started with `--open` needs none.
    pub fn token(mut self, token: &str) -> Client {
        self.http.set_token(token);
        self
    }

    pub fn ai(&self) -> Ai {
        Ai { http: self.http.clone() }
    }

    pub fn workspace(&self, name: &str) -> Workspace {
        Workspace::new(self.http.clone(), name)
    }
}

/// The client of the environment: `STEAD_URL` (default `http://127.0.0.1:7777`) and `STEAD_TOKEN`.
pub fn try_get_client() -> Result<Client, Error> {
    let url = std::env::var("STEAD_URL").unwrap_or_else(|_| "http://127.0.0.1:7777".into());
    let client = Client::new(&url)?;
    Ok(match std::env::var("STEAD_TOKEN") {
        Ok(token) if !token.is_empty() => client.token(&token),
        _ => client,
    })
}

/// Task boards under the names that clients of Wacht use: a project is a workspace.
pub struct Ai {
    http: Http,
}

impl Ai {
    pub fn actor_projects(&self) -> ActorProjects {
        ActorProjects::new(self.http.clone())
    }

    pub fn actor_project_threads(&self) -> ActorProjectThreads {
        ActorProjectThreads::new(self.http.clone())
    }
}
