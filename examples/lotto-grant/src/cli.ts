import { runCommandLine } from 'customer-authorization-service';
import { lotto } from './lotto.extension.js';

await runCommandLine(lotto);
