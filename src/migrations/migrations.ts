import { House1795100000000 } from './1795100000000-house.js';

/** Every step of the schema, oldest first. Old and new processes run together during an update: expand, then contract. */
export const migrations = [House1795100000000];
