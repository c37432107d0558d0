import { isIP } from 'node:net';
import { loadWhenUsed } from '../load-when-used.js';

/** A browser stores no cookie whose `Domain` is neither the host nor a registrable parent domain of it (RFC 6265 §5.3). */
export function isCookieDomain(domain: string, host: string): boolean {
  if (domain === 'host-only' || domain === host) return true;
  return host.endsWith(`.${domain}`) && isIP(host) === 0 && !isPublicSuffix(domain);
}

/** Includes the suffixes of hosting companies, as in browsers. A last label that the list does not contain is one too. */
function isPublicSuffix(domain: string): boolean {
  const { getPublicSuffix } = loadWhenUsed<typeof import('tldts')>('tldts');
  return getPublicSuffix(domain, { allowPrivateDomains: true }) === domain;
}
