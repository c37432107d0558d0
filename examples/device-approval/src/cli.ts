import { runCommandLine } from 'customer-authorization-service';
import { deviceApproval } from './device-approval.extension.js';

await runCommandLine(deviceApproval);
