// @ts-check
/** Step 6: a backend that the service itself plays. */
import { claimsView } from './claims-view.js';
import { byId, code, element, onSubmit } from './dom.js';
import { send } from './service.js';
import { runStep } from './session.js';

export function connectBackendStep() {
  onSubmit('backend-form', askBackend);
}

async function askBackend() {
  const external_id = /** @type {HTMLInputElement} */ (byId('external-id')).value;
  const exchange = await send({ method: 'POST', path: '/try/backend/customer', body: { external_id } });
  const { response } = exchange;
  await runStep('backend', async (show) => {
    if (response?.status !== 200) {
      show(exchange);
      return [];
    }
    const { agentTokenClaims, ...sent } = response.body;
    const summary = element('summary', {}, 'What the agent token says');
    byId('backend-claims').replaceChildren(element('details', {}, summary, claimsView(agentTokenClaims)));
    sent.request.copied = exchange.request; // a copy with the placeholder of the agent token would get 401
    const { entity_id, created } = show(/** @type {any} */ (sent));
    const what = created ? 'The backend created customer ' : 'The id was known: it leads to customer ';
    return [what, code(entity_id), created ? '. Ask once more: the customer stays the same.' : '.'];
  });
}
