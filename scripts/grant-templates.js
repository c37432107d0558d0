// @ts-check
/** The templates of a grant, which the options of both generators choose. */

export const TEMPLATE_OPTIONS = ['--route', '--agent', '--polling', '--message'];
export const TEMPLATE_PARSER_OPTIONS = /** @type {const} */ ({
  route: { type: 'boolean' },
  agent: { type: 'boolean' },
  polling: { type: 'boolean' },
  message: { type: 'boolean' },
});
export const TEMPLATE_HELP = `  without option    the grant verifies proofs that another system issues
  --route           the grant redeems codes that a route creates
  --agent           the same, and the route is for agents, who name the customer
  --polling         the client polls until a person has confirmed its request by a second route
  --message         new-package only: the route sends a short code to an address, and again; an address has one customer`;

/**
 * The folders of templates, of which a later one replaces files of those before.
 *
 * @param {{ route?: boolean, agent?: boolean, polling?: boolean, message?: boolean }} options
 * @throws Error if the options contradict each other
 */
export function templateFolders(options) {
  const chosen = /** @type {const} */ (['agent', 'polling', 'message']).filter((name) => options[name]);
  if (chosen.length > 1) throw new Error(`--${chosen.join(' and --')} are different templates; choose one`);
  return options.route || chosen.length > 0 ? ['route', ...chosen] : ['plain'];
}
