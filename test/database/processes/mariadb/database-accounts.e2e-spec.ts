import { describeDatabaseAccounts } from '../../../support/database-accounts.js';

describeDatabaseAccounts('MariaDB', () => process.env.TEST_DATABASE_URL ?? '');
