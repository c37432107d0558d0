import { logOutEverywhere, TokenClient } from '@customer-authorization/browser-client';
import { options } from './chat.js';

/** One client per group. `groups.support.fetch(url)` calls an API as the customer of the group `support`. */
export const groups = {
  sales: new TokenClient({ ...options, groupId: 'sales' }),
  support: new TokenClient({ ...options, groupId: 'support' }),
};

/** Logs out the customers of all groups, one after the other. */
export const logOutOfAllGroups = () => logOutEverywhere(...Object.values(groups));
