//! The containers of compose and Kubernetes files, in one format. Parses YAML and judges nothing.

use serde_json::Value;

/// A container of a file.
#[derive(Debug, Default)]
pub(crate) struct Container {
    /// The file and the name, for error messages.
    pub(crate) place: String,
    pub(crate) image: String,
    /// The arguments of its program.
    pub(crate) words: Vec<String>,
    pub(crate) variables: Vec<Variable>,
    /// The seconds between the stop request and the kill; `None` if not set.
    pub(crate) grace: Option<u64>,
    /// The part of these seconds before the program gets the signal.
    pub(crate) pause: u64,
    pub(crate) ports: Vec<u64>,
    /// The path and port of every health probe.
    pub(crate) probes: Vec<(String, u64)>,
    /// The missing security restrictions.
    pub(crate) not_locked: Vec<&'static str>,
    /// For Kubernetes: the missing probes among startup, readiness and liveness.
    pub(crate) not_asked: Vec<&'static str>,
    /// True if memory is limited, and in Kubernetes also CPU and requests.
    pub(crate) bounded: bool,
}

/// An environment variable.
#[derive(Debug)]
pub(crate) struct Variable {
    pub(crate) name: String,
    /// The value in the file; `None` if it comes from elsewhere.
    pub(crate) value: Option<String>,
}

impl Container {
    /// Returns the name of the image without its registry and version.
    pub(crate) fn program(&self) -> &str {
        let name = self.image.rsplit('/').next().unwrap();
        name.split(':').next().unwrap()
    }
}

/// Returns the documents of a file.
pub(crate) fn documents(text: &str) -> Vec<Value> {
    text.split("\n---\n").map(|document| serde_saphyr::from_str(document).unwrap()).collect()
}

/// Returns the services of a compose file.
pub(crate) fn of_compose(text: &str) -> Vec<Container> {
    let file = documents(text).remove(0);
    let services = file["services"].as_object().unwrap();
    services.iter().map(|(name, service)| compose_service(name, service)).collect()
}

fn compose_service(name: &str, service: &Value) -> Container {
    let wanted = [
        ("read_only", service["read_only"] == true),
        ("cap_drop", words(&service["cap_drop"]) == ["ALL"]),
        ("no-new-privileges", words(&service["security_opt"]) == ["no-new-privileges:true"]),
    ];
    let published = words(&service["ports"]);
    Container {
        place: format!("compose.yaml: {name}"),
        image: text(&service["image"]),
        words: words(&service["command"]),
        variables: compose_variables(&service["environment"]),
        grace: service["stop_grace_period"].as_str().and_then(|text| text.strip_suffix('s')?.parse().ok()),
        ports: published.iter().map(|port| port.rsplit(':').next().unwrap().parse().unwrap()).collect(),
        not_locked: wanted
            .into_iter()
            .filter(|(_, good)| !good)
            .map(|(name, _)| name)
            .chain(published.iter().any(|port| !port.starts_with("127.0.0.1:")).then_some("ports"))
            .collect(),
        bounded: service["mem_limit"].is_string(),
        ..Container::default()
    }
}

fn compose_variables(given: &Value) -> Vec<Variable> {
    let given = given.as_object().cloned().unwrap_or_default();
    let variable = |(name, value): (String, Value)| {
        // `${NAME:?…}` and a bare name take the value from outside.
        let value = value.as_str().map(str::to_owned).filter(|value| !value.starts_with("${"));
        Variable { name, value }
    };
    given.into_iter().map(variable).collect()
}

/// Returns the containers of the workloads in a Kubernetes file.
pub(crate) fn of_kubernetes(file: &str, text: &str) -> Vec<Container> {
    let documents = documents(text);
    let pods = documents.iter().filter(|document| document["spec"]["template"].is_object());
    pods.flat_map(|workload| {
        let pod = &workload["spec"]["template"]["spec"];
        let containers = pod["containers"].as_array().unwrap();
        containers.iter().map(|container| kubernetes_container(file, workload, container)).collect::<Vec<_>>()
    })
    .collect()
}

fn kubernetes_container(file: &str, workload: &Value, container: &Value) -> Container {
    let pod = &workload["spec"]["template"]["spec"];
    let (shared, own) = (&pod["securityContext"], &container["securityContext"]);
    let wanted = [
        ("runAsNonRoot", shared["runAsNonRoot"] == true && shared["runAsUser"].as_u64() > Some(0)),
        ("seccompProfile", shared["seccompProfile"]["type"] == "RuntimeDefault"),
        ("allowPrivilegeEscalation", own["allowPrivilegeEscalation"] == false),
        ("readOnlyRootFilesystem", own["readOnlyRootFilesystem"] == true),
        ("capabilities", words(&own["capabilities"]["drop"]) == ["ALL"]),
        ("automountServiceAccountToken", pod["automountServiceAccountToken"] == false),
        // Otherwise Kubernetes turns a service with this name into variables that its program reads as settings.
        ("enableServiceLinks", pod["enableServiceLinks"] == false),
    ];
    let asked = ["startupProbe", "readinessProbe", "livenessProbe"];
    let ends_by_itself = workload["kind"] == "Job";
    let ports = container["ports"].as_array().cloned().unwrap_or_default();
    let number = |name: &Value| {
        let named = ports.iter().find(|port| port["name"] == *name);
        named.map_or(name, |port| &port["containerPort"]).as_u64().unwrap_or_default()
    };
    let probes = asked.iter().filter_map(|probe| container[*probe]["httpGet"].as_object());
    let limits = &container["resources"];
    Container {
        place: format!("{file}: {}", text(&container["name"])),
        image: text(&container["image"]),
        words: words(&container["args"]).into_iter().chain(words(&container["command"])).collect(),
        variables: kubernetes_variables(&container["env"]),
        grace: pod["terminationGracePeriodSeconds"].as_u64(),
        pause: container["lifecycle"]["preStop"]["sleep"]["seconds"].as_u64().unwrap_or_default(),
        ports: ports.iter().map(|port| port["containerPort"].as_u64().unwrap()).collect(),
        probes: probes.map(|probe| (text(&probe["path"]), number(&probe["port"]))).collect(),
        not_locked: wanted.into_iter().filter(|(_, good)| !good).map(|(name, _)| name).collect(),
        not_asked: asked
            .into_iter()
            .filter(|probe| !ends_by_itself && !container[*probe].is_object())
            .collect(),
        bounded: ["requests", "limits"]
            .iter()
            .all(|kind| limits[kind]["cpu"].is_string() && limits[kind]["memory"].is_string()),
    }
}

fn kubernetes_variables(given: &Value) -> Vec<Variable> {
    let given = given.as_array().cloned().unwrap_or_default();
    let variable = |given: &Value| Variable {
        name: text(&given["name"]),
        value: given["value"].as_str().map(str::to_owned),
    };
    given.iter().map(variable).collect()
}

pub(crate) fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

pub(crate) fn words(value: &Value) -> Vec<String> {
    value.as_array().cloned().unwrap_or_default().iter().map(text).collect()
}
