import { runService } from 'customer-authorization-service';
import { deviceApproval } from './device-approval.extension.js';

await runService(deviceApproval);
