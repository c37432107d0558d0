// @ts-check
/** The templates of a grant, which the options of both generators choose. */

export const TEMPLATE_OPTIONS = ['--route', '--agent', '--polling'];
export const TEMPLATE_PARSER_OPTIONS = /** @type {const} */ ({
  route: { type: 'boolean' },
  agent: { type: 'boolean' },
  polling: { type: 'boolean' },
});
export const TEMPLATE_HELP = `  without option    the grant verifies proofs that another system issues
  --route           the grant redeems codes that a route creates
  --agent           the same, and the route is for agents, who name the customer
  --polling         the client polls until a person has confirmed its request by a second route`;

/**
 * The folders of templates, of which a later one replaces files of those before.
 *
 * @param {{ route?: boolean, agent?: boolean, polling?: boolean }} options
 * @throws Error if the options contradict each other
 */
export function templateFolders({ route, agent, polling }) {
  if (agent && polling) throw new Error('--agent and --polling are two templates; choose one');
  if (agent) return ['route', 'agent'];
  if (polling) return ['route', 'polling'];
  return [route ? 'route' : 'plain'];
}
