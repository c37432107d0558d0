import type { GrantRule } from '../grant-subject.js';
import { withoutDatabase } from '../race.js';

/** A caller drops its proof after `invalid_grant`, but repeats the request after 503. */
export const OUTAGE_RULE: GrantRule = {
  title: 'does not respond with invalid_grant to a valid request while the database is unavailable',
  async check(subject) {
    const { path, body, headers } = await subject.create();
    const response = await withoutDatabase(subject.service, () => subject.service.post(path, body, headers));
    if (response.body?.error !== 'invalid_grant') return;
    throw new Error(`let each error of \`Database\` pass, so that the response is 503\nresponse: ${response.text}`);
  },
};
