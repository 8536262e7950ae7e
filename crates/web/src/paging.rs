//! Pages of lists, and ETags.

use crate::credentials::hash;
use crate::failure::ApiFailure;
use axum::http::header::{ETAG, IF_NONE_MATCH, LINK};
use axum::http::{HeaderMap, HeaderValue, StatusCode, Uri};
use axum::response::Response;
use gt_core::Problem;
use serde_json::{Map, Value};

/// Elements of a page without a limit.
pub(crate) const USUAL: usize = 100;

/// A page of a list.
#[derive(Debug, PartialEq)]
pub(crate) struct ListPage {
    pub(crate) elements: Vec<Value>,
    /// The key of the last element, if the list continues.
    pub(crate) next: Option<String>,
}

/// Returns the value of the parameter `limit`.
pub(crate) fn limit_of(values: &Map<String, Value>) -> usize {
    let limit = values.get("limit").and_then(Value::as_u64);
    limit.map_or(USUAL, |limit| usize::try_from(limit).unwrap_or(USUAL))
}

/// Returns the elements after the one with the key `page`. Elements are identified by a field, so
/// elements that are added or removed elsewhere shift no page.
pub(crate) fn page_of(
    list: Vec<Value>,
    key: &str,
    values: &Map<String, Value>,
) -> Result<ListPage, ApiFailure> {
    let limit = limit_of(values);
    let key_of = |element: &Value| element.get(key).and_then(Value::as_str).map(str::to_owned);
    let start = match values.get("page").and_then(Value::as_str) {
        None => 0,
        Some(after) => {
            let is_it = |element: &Value| key_of(element).as_deref() == Some(after);
            let Some(at) = list.iter().position(is_it) else {
                let problem = Problem::not_found(format!("{after:?} is no longer in the list"));
                let problem = problem.hint("begin with the first page");
                return Err(ApiFailure::new(StatusCode::GONE, problem));
            };
            at + 1
        }
    };
    let has_more = list.len() > start + limit;
    let elements: Vec<Value> = list.into_iter().skip(start).take(limit).collect();
    let next = elements.last().and_then(key_of).filter(|_| has_more);
    Ok(ListPage { elements, next })
}

/// Adds the link to the next page.
pub(crate) fn add_link(response: &mut Response, uri: &Uri, next: Option<&str>) {
    let Some(next) = next else { return };
    let query = uri.query().unwrap_or_default().split('&');
    let mut query: Vec<String> = query
        .filter(|pair| !pair.is_empty() && !pair.starts_with("page="))
        .map(str::to_owned)
        .collect();
    query.push(format!("page={}", percent_encoded(next)));
    let link = format!("<{}?{}>; rel=\"next\"", uri.path(), query.join("&"));
    if let Ok(link) = HeaderValue::from_str(&link) {
        response.headers_mut().insert(LINK, link);
    }
}

/// Adds the ETag of a document to its response. Returns an empty response if the client has it.
pub(crate) fn with_etag(mut response: Response, document: &Value, asked: &HeaderMap) -> Response {
    let etag = format!("\"{}\"", &hash(&document.to_string())[..32]);
    // A tag that is not text is not one of ours: the client gets the document.
    let held = asked.get(IF_NONE_MATCH).and_then(|held| held.to_str().ok());
    let is_held = held.is_some_and(|held| {
        let mut tags = held.split(',').map(str::trim);
        tags.any(|tag| tag == "*" || tag.trim_start_matches("W/") == etag)
    });
    if is_held {
        response = Response::default();
        *response.status_mut() = StatusCode::NOT_MODIFIED;
    }
    if let Ok(etag) = HeaderValue::from_str(&etag) {
        response.headers_mut().insert(ETAG, etag);
    }
    response
}

/// Encodes a text as a value in a query.
fn percent_encoded(text: &str) -> String {
    let encode = |byte: u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
            char::from(byte).to_string()
        }
        other => format!("%{other:02X}"),
    };
    text.bytes().map(encode).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn page(list: &[&str], after: Option<&str>) -> Result<(Vec<String>, Option<String>), u16> {
        let list = list.iter().map(|id| json!({"id": id})).collect();
        let mut values = Map::from_iter([("limit".to_owned(), json!(2))]);
        values.extend(after.map(|after| ("page".to_owned(), json!(after))));
        let page = page_of(list, "id", &values).map_err(|failure| failure.status.as_u16())?;
        let ids = page
            .elements
            .iter()
            .filter_map(|element| element["id"].as_str());
        Ok((ids.map(str::to_owned).collect(), page.next))
    }

    #[test]
    fn pages_begin_after_an_element() {
        let check = |list: &[&str], after, ids: &[&str], next: Option<&str>| {
            let ids = ids.iter().map(|id| (*id).to_owned()).collect();
            assert_eq!(page(list, after), Ok((ids, next.map(str::to_owned))));
        };
        check(&["a", "b", "c"], None, &["a", "b"], Some("b"));
        check(&["a", "b", "c"], Some("b"), &["c"], None);
        check(&["new", "a", "b", "c"], Some("b"), &["c"], None);
        check(&["a", "b"], None, &["a", "b"], None);
        check(&[], None, &[], None);
        assert_eq!(page(&["a"], Some("gone")), Err(410));
    }
}
