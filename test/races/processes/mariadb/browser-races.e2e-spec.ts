import { createEmptyDatabase } from '../../../../packages/conformance-kit/src/test-database.js';
import { useDatabase } from '../../../support/databases.js';
import { describeBoundRaces, describeBrowserRaces } from '../../browser-races.js';
import { useRaceWorld } from '../../world.js';

const database = useDatabase(createEmptyDatabase);
const world = useRaceWorld(async () => [database.url, database.url]);
describeBrowserRaces(world);
describeBoundRaces(world);
