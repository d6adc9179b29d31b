//! Films of motions: a browser draws the frames, as it draws a page, and sends them; they become a
//! GIF or an MP4 file.

use crate::motion::Motion;
use std::path::{Path, PathBuf};

/// Formats of films.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Video {
    /// Pictures of 256 colours, which repeat without an end.
    Gif,
    /// H.264 in an MP4 file.
    Mp4,
}

/// How a motion is filmed.
#[derive(Clone, Debug)]
pub struct Film {
    /// The motion.
    pub motion: Motion,
    /// Times of the frames.
    pub times: Vec<f64>,
    /// Frames a second.
    pub rate: f64,
    /// Width and height in pixels; even numbers for [`Video::Mp4`].
    pub size: (u32, u32),
    /// True for light things before a dark ground.
    pub dark: bool,
    /// Label of the unit of time, empty if there is none.
    pub unit: String,
}

/// Browsers that draw films, by the names of their programs.
const BROWSERS: [&str; 7] = [
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
    "chrome",
    "microsoft-edge",
    "brave-browser",
];

/// The first program on the search path that is a browser of the Chromium family.
pub(crate) fn browser() -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let all = std::env::split_paths(&path);
    let folders: Vec<PathBuf> = all.collect();
    let found = |name: &str| folders.iter().map(|f| f.join(name)).find(|file| file.is_file());
    let apps = ["/Applications/Google Chrome.app/Contents/MacOS/Google Chrome"];
    BROWSERS
        .iter()
        .find_map(|name| found(name))
        .or_else(|| apps.iter().map(PathBuf::from).find(|file| file.is_file()))
}

impl Film {
    /// Writes the film to a file, by a `browser` of the Chromium family or the one that is found.
    /// `watch` is told the number of frames that are drawn, and says whether to go on.
    ///
    /// # Errors
    /// If there is no browser, it fails or stays silent, the file cannot be written, or this build
    /// draws nothing. The message says which.
    pub fn write(
        &self,
        video: Video,
        file: &Path,
        browser: Option<&Path>,
        watch: &mut dyn FnMut(usize) -> bool,
    ) -> Result<(), String> {
        #[cfg(feature = "figures")]
        return shooting::write(self, video, file, browser, watch);
        #[cfg(not(feature = "figures"))]
        {
            let _ = (video, file, browser, watch);
            Err("this build draws no films: it was compiled without the feature `figures`".into())
        }
    }
}

#[cfg(feature = "figures")]
mod shooting;
