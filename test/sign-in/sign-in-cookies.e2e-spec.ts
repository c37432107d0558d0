import { createRequire } from 'node:module';
import { beforeAll, describe, expect, it, vi } from 'vitest';
import { AgentBrowser, FOR_TOKEN, redirected } from '../support/authorization-page.js';
import { useService } from '../support/use-service.js';

/** The module object on which cookie-parser's verification calls `createHmac`. */
const crypto = createRequire(import.meta.url)('node:crypto') as typeof import('node:crypto');

const service = useService();
let signedIn: AgentBrowser;
beforeAll(async () => {
  signedIn = new AgentBrowser(service);
  await signedIn.signIn();
});

/** How many cookie signatures the service computes for a request with this `Cookie` header. */
async function signaturesFor(cookie: string): Promise<number> {
  const createHmac = vi.spyOn(crypto, 'createHmac');
  try {
    await new AgentBrowser(service).open(FOR_TOKEN, { cookie });
    return createHmac.mock.calls.length;
  } finally {
    createHmac.mockRestore();
  }
}

const filled = (pair: (n: number) => string) =>
  Array.from({ length: 500 }, (_, n) => pair(n))
    .join('; ')
    .slice(0, 15_000);

describe('the cookies of the authorization page', () => {
  it('cost no signature check for cookies of other names, however many the request carries', async () => {
    const few = await signaturesFor('other=s%3Ax.y');
    expect(await signaturesFor(filled((n) => `c${n}=s%3A${n}.sig`))).toBe(few);
    expect(await signaturesFor(filled((n) => `form${n}=s%3Aform.${n}.sig`))).toBe(few);
  });

  it('cost one signature check for each secret when one name is repeated', async () => {
    const once = await signaturesFor('__Host-agent_session=s%3Ax.y');
    expect(await signaturesFor(filled(() => '__Host-agent_session=s%3Ax.y'))).toBe(once);
    expect(once).toBeLessThanOrEqual(4);
  });

  it('are found among other cookies, and next to broken ones', async () => {
    const cookie = `${filled((n) => `c${n}=s%3A${n}.sig`)}; broken=%; nothing;=; ${signedIn.cookie}`;
    const { parameters } = redirected(await new AgentBrowser(service).open(FOR_TOKEN, { cookie }));
    expect(parameters).toHaveProperty('access_token');
  });

  it.each(['%', 'x', 's:', 's%3A', ' ', '"', 'j%3A%7B%7D'])('are ignored with the value %j', async (value) => {
    const page = await new AgentBrowser(service).open(FOR_TOKEN, { cookie: `__Host-agent_session=${value}` });
    expect(page.status).toBe(200);
    expect(page.text).toContain('action="/sign-in"');
  });
});
