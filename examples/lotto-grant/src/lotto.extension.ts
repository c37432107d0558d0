import type { Extension } from 'customer-authorization-service';
import { LottoTickets1795300000000 } from './1795300000000-lotto-tickets.js';
import { LottoGrantModule } from './lotto-grant.module.js';

/** The module and the migration that this package adds to the service. */
export const lotto: Extension = { modules: [LottoGrantModule], migrations: [LottoTickets1795300000000] };
