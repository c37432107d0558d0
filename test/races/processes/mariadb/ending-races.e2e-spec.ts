import { createEmptyDatabase } from '../../../../packages/conformance-kit/src/test-database.js';
import { useDatabase } from '../../../support/databases.js';
import { describeAgentRaces } from '../../agent-races.js';
import { describeEndingRaces } from '../../ending-races.js';
import { useRaceWorld } from '../../world.js';

const database = useDatabase(createEmptyDatabase);
const world = useRaceWorld(async () => [database.url, database.url]);
describeEndingRaces(world);
describeAgentRaces(world);
