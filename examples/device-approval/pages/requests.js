// @ts-check
/** What both pages need. The ids are those of the demo registry. */

export const DEMO = {
  client_id: '9cbf3a968289727cb3cdfe83ab1d9836',
  organization_id: '390e44e6-f1e6-4368-86dd-b74514508c2e',
};

/**
 * @param {string} path
 * @param {object} body
 * @param {Record<string, string>} [headers]
 * @returns {Promise<{ status: number, body: any }>}
 */
export async function post(path, body, headers = {}) {
  const response = await fetch(path, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json', ...headers },
    body: JSON.stringify(body),
  });
  return { status: response.status, body: await response.json() };
}

/** @param {string} id */
export const byId = (id) => /** @type {HTMLElement} */ (document.getElementById(id));

/**
 * Shows a sentence in the live region of the page.
 * @param {'success' | 'problem' | 'waiting'} kind
 * @param {string} text
 */
export function showResult(kind, text) {
  const region = byId('result');
  region.className = `result ${kind}`;
  const sentence = document.createElement('p');
  sentence.textContent = text;
  region.replaceChildren(sentence);
}
