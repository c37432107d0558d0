const HEADER_BYTES = 4;
const [QUERY, PREPARE, EXECUTE] = [0x03, 0x16, 0x17];
/** What MySQL, unlike MariaDB, expects before the text of a QUERY: that it has no attributes. */
const NO_ATTRIBUTES = Buffer.of(0, 1);

/** Splits what a client of MySQL sends into packets. */
export class PacketReader {
  private rest = Buffer.alloc(0);

  *read(bytes: Buffer): Generator<Buffer, void> {
    this.rest = Buffer.concat([this.rest, bytes]);
    while (this.rest.length >= HEADER_BYTES) {
      const size = HEADER_BYTES + this.rest.readUIntLE(0, 3);
      if (this.rest.length < size) return;
      const packet = this.rest.subarray(0, size);
      this.rest = this.rest.subarray(size);
      yield packet;
    }
  }
}

/** Finds the SQL text of the commands of a connection. A command that executes a statement has only its id. */
export class StatementTexts {
  private readonly texts = new Map<number, string>();
  /** The text of a statement whose id the server has not sent yet. */
  private prepared: string | undefined;
  /** What stands before the text of each QUERY. */
  private prefix = Buffer.alloc(0);

  /** @returns the text that the packet executes; `undefined` for other packets */
  sent(packet: Buffer): string | undefined {
    const isCommand = packet[HEADER_BYTES - 1] === 0; // the packets of the handshake have higher numbers
    if (!isCommand) return undefined;
    const [command, rest] = [packet[HEADER_BYTES], packet.subarray(HEADER_BYTES + 1)];
    if (command === PREPARE) this.prepared = rest.toString();
    if (command === EXECUTE) return this.texts.get(rest.readUInt32LE());
    if (command !== QUERY) return undefined;
    if (rest.subarray(0, NO_ATTRIBUTES.length).equals(NO_ATTRIBUTES)) this.prefix = NO_ATTRIBUTES;
    return rest.toString('utf8', this.prefix.length);
  }

  /** A packet that executes the text in place of another one. */
  packetOf(sql: string): Buffer {
    return packetOf(0, Buffer.concat([Buffer.of(QUERY), this.prefix, Buffer.from(sql)]));
  }

  received(bytes: Buffer): void {
    if (this.prepared !== undefined) this.texts.set(bytes.readUInt32LE(HEADER_BYTES + 1), this.prepared);
    this.prepared = undefined;
  }
}

/** The first packet of a response. */
export function errorPacket({ errno, message = 'injected' }: { errno: number; message?: string }): Buffer {
  const number = Buffer.alloc(2);
  number.writeUInt16LE(errno);
  return packetOf(1, Buffer.concat([Buffer.of(0xff), number, Buffer.from(`#HY000${message}`)]));
}

function packetOf(sequence: number, body: Buffer): Buffer {
  const header = Buffer.alloc(HEADER_BYTES);
  header.writeUIntLE(body.length, 0, 3);
  header[HEADER_BYTES - 1] = sequence;
  return Buffer.concat([header, body]);
}
