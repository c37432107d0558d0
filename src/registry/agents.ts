import { Injectable } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import type { Repository } from 'typeorm';
import { Agent } from './agent.entity.js';

/** Told before agents' new passwords are committed, so that nothing the old ones opened outlives them. */
type PasswordListener = (agentIds: string[]) => Promise<void>;

/** The agents of all organizations, read when they sign in. */
@Injectable()
export class Agents {
  private readonly listeners: PasswordListener[] = [];

  constructor(@InjectRepository(Agent) private readonly agents: Repository<Agent>) {}

  async byEmail(email: string): Promise<Agent | undefined> {
    return (await this.agents.findOneBy({ email: email.toLowerCase() })) ?? undefined;
  }

  async byId(id: string): Promise<Agent | undefined> {
    return (await this.agents.findOneBy({ id })) ?? undefined;
  }

  onPasswordChange(listener: PasswordListener): void {
    this.listeners.push(listener);
  }

  async passwordsChange(agentIds: string[]): Promise<void> {
    for (const listener of this.listeners) await listener(agentIds);
  }
}
