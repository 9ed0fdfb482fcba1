//! The tested commands. `scenes.txt` has one per line.

/// A command in the prepared folder.
#[derive(Debug)]
pub(crate) struct Scene {
    /// The name of its snapshot file.
    pub(crate) name: String,
    /// The arguments of `cogn`.
    pub(crate) line: String,
    /// True if no line may be wider than the terminal. False for JSON, scripts and single long words.
    pub(crate) fits: bool,
    /// The other participant of the scene.
    pub(crate) with: SceneCompany,
}

/// The participants of a scene besides the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SceneCompany {
    Nobody,
    /// A hosted model that answers with recorded replies.
    Model,
    /// An operator that stops the program once it listens.
    Operator,
}

impl Scene {
    /// A scene from a line such as `serve | fits operator | serve --port 0`.
    pub(crate) fn read(row: &str) -> Self {
        let [name, flags, line] = row.splitn(3, '|').map(str::trim).collect::<Vec<_>>()[..] else {
            panic!("no scene: {row}")
        };
        let has = |flag| flags.split(' ').any(|each| each == flag);
        let with = match (has("model"), has("operator")) {
            (true, _) => SceneCompany::Model,
            (_, true) => SceneCompany::Operator,
            _ => SceneCompany::Nobody,
        };
        Self { name: name.to_owned(), line: line.to_owned(), fits: has("fits"), with }
    }
}

/// The commands whose help is tested.
const COMMANDS: &str = "run batch prompt lower types export import compose media list info init validate test eval train verify migrate add remove update versions search pack sign publish registry serve studio store deploy prices mcp audit review context doctor model trust capabilities completions man explain schema check conformance";

/// Returns all scenes.
pub(crate) fn scenes() -> Vec<Scene> {
    let helps = COMMANDS.split(' ').chain(["audit list"]);
    let helps = helps.map(|command| format!("help-{} | fits | {command} --help", command.replace(' ', "-")));
    let rows = include_str!("scenes.txt").lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    helps.chain(rows.map(str::to_owned)).map(|row| Scene::read(&row)).collect()
}
