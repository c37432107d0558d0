import { House1795100000000 } from './1795100000000-house.js';
import { AgentsTokens1795110000000 } from './1795110000000-agents-tokens.js';
import { ClientSecrets1795220000000 } from './1795220000000-client-secrets.js';

/** Every step of the schema, oldest first. Old and new processes run together during an update: expand, then contract. */
export const migrations = [House1795100000000, AgentsTokens1795110000000, ClientSecrets1795220000000];
