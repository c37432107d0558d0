import { runService } from 'customer-authorization-service';
import { lotto } from './lotto.extension.js';

await runService(lotto);
