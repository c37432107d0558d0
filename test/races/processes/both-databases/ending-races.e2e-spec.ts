import { createEmptyDatabase } from '../../../../packages/conformance-kit/src/test-database.js';
import { useDatabase } from '../../../support/databases.js';
import { describeEndingRaces } from '../../ending-races.js';
import { useRaceWorld } from '../../world.js';

const database = useDatabase(createEmptyDatabase);
describeEndingRaces(useRaceWorld(async () => [database.url, database.url]));
