import { beforeAll, describe, expect, it } from 'vitest';
import { AgentBrowser, FOR_TOKEN, redirected } from '../support/authorization-page.js';
import { useService } from '../support/use-service.js';

const service = useService();
let signedIn: AgentBrowser;
beforeAll(async () => {
  signedIn = new AgentBrowser(service);
  await signedIn.signIn();
});

const filled = (pair: (n: number) => string) =>
  Array.from({ length: 500 }, (_, n) => pair(n))
    .join('; ')
    .slice(0, 15_000);

describe('the cookies of the authorization page', () => {
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
