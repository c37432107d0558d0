import { inject } from 'vitest';
import { describeDatabaseAccounts } from '../support/database-accounts.js';
import { openNodes } from './servers/start-cluster.js';

const plan = inject('clusterPlan');

describeDatabaseAccounts(plan.kind, () => openNodes(plan)[0]?.url() ?? '');
