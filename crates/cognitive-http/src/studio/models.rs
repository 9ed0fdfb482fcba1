//! The models that a run may name: the default one, its fallbacks, and those that the operator lists. All share the
//! same host, so that budgets, records and rules of the operator apply to each. A model is built at its first use.

use std::sync::{Arc, OnceLock};

use axum::body::Body;
use axum::extract::State;
use axum::http::{Response, StatusCode};
use cognitive_contract::money::CURRENCY;
use cognitive_contract::ports::Provider;
use cognitive_contract::text::cut;
use cognitive_contract::{ErrorCode, Failure};
use cognitive_ports::prices::PriceTable;
use cognitive_runtime::Host;
use schemars::JsonSchema;
use serde::Serialize;

use crate::app::AppState;
use crate::config::{NamedModel, ProviderMaker};
use crate::response;

/// All models of a server.
pub(crate) struct ServerModels(Vec<ServerModel>);

struct ServerModel {
    name: String,
    is_default: bool,
    is_local: bool,
    make: ProviderMaker,
    /// The provider, once it has been built.
    built: OnceLock<Arc<dyn Provider>>,
}

/// The models that a run may name.
#[derive(Serialize, JsonSchema)]
pub(crate) struct ModelList {
    models: Vec<ListedModel>,
}

/// A model that a run may name.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "NamedModel")]
struct ListedModel {
    name: String,
    is_default: bool,
    is_local: bool,
    /// The price, if it is known.
    price: Option<ListedPrice>,
}

#[derive(Serialize, JsonSchema)]
#[schemars(inline)]
struct ListedPrice {
    input_per_million: String,
    output_per_million: String,
    currency: &'static str,
    as_of: String,
}

impl ServerModels {
    /// Creates the list: the models of the host, then those that the operator adds.
    pub(crate) fn new(host: &Arc<Host>, named: &[NamedModel]) -> Self {
        let built = host.models.all().map(|provider| NamedModel::from_provider(Arc::clone(provider)));
        let mut server_models: Vec<ServerModel> = Vec::new();
        for model in built.chain(named.iter().cloned()) {
            if server_models.iter().all(|known| known.name != model.name) {
                let is_default = server_models.is_empty();
                let NamedModel { name, is_local, make } = model;
                server_models.push(ServerModel { name, is_default, is_local, make, built: OnceLock::new() });
            }
        }
        Self(server_models)
    }

    /// Returns the provider of a model. The first call may have to load it, which can take long.
    pub(crate) fn provider(&self, name: &str) -> Result<Arc<dyn Provider>, Failure> {
        let Some(model) = self.0.iter().find(|model| model.name == name) else {
            let message = format!("unknown model: `{}`", cut(name, 128));
            return Err(
                Failure::new(ErrorCode::InvalidInput, message).suggest("`GET /v1/models` lists the models")
            );
        };
        if let Some(known) = model.built.get() {
            return Ok(Arc::clone(known));
        }
        let provider = (model.make)()?;
        Ok(Arc::clone(model.built.get_or_init(|| provider)))
    }

    fn list_models(&self, prices: &PriceTable) -> ModelList {
        let told = |model: &ServerModel| {
            let (provider, own) = model.name.split_once('/').unwrap_or((&model.name, ""));
            let price = prices.row(provider, own).map(|row| ListedPrice {
                input_per_million: row.input.to_string(),
                output_per_million: row.output.to_string(),
                currency: CURRENCY,
                as_of: row.as_of.to_string(),
            });
            ListedModel {
                name: model.name.clone(),
                is_default: model.is_default,
                is_local: model.is_local,
                price,
            }
        };
        ModelList { models: self.0.iter().map(told).collect() }
    }
}

impl NamedModel {
    /// Creates a model from an existing provider.
    #[must_use]
    pub fn from_provider(provider: Arc<dyn Provider>) -> Self {
        let name = provider.destination().unwrap_or_default().model_label(provider.name());
        let is_local = provider.is_local();
        Self { name, is_local, make: Arc::new(move || Ok(Arc::clone(&provider))) }
    }
}

/// `GET /v1/models`.
pub(crate) async fn list(State(shared): State<Arc<AppState>>) -> Response<Body> {
    response::json(StatusCode::OK, &shared.models.list_models(&shared.host.prices))
}
