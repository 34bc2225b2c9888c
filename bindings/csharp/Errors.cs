// What the library says when it cannot do what it was asked.
using System;
using System.Text;

namespace Cdd
{
    /// <summary>The kinds of errors, as cdd.h has them.</summary>
    public enum Status
    {
        Ok, InvalidArgument, OutOfRange, Closed, Io, Corrupt, Truncated, Checksum, Unsupported, Limit, Cancelled,
        TimedOut, NoMemory, Internal
    }

    /// <summary>What an error's Number counts.</summary>
    public enum Place { Nowhere, Header, Index, Chunk, Row, Tile }

    /// <summary>An error of the library: its status, where it lies, and a text for people.</summary>
    public sealed class CddException : Exception
    {
        /// <summary>The kind of error.</summary>
        public Status Status { get; }
        /// <summary>The operating system's number, 0 where it had no part in it.</summary>
        public int OsErrno { get; }
        /// <summary>What Number counts.</summary>
        public Place Kind { get; }
        /// <summary>Of the index block, chunk, row or tile; null where no one has the error.</summary>
        public ulong? Number { get; }
        /// <summary>The field of the row, or null.</summary>
        public ulong? Field { get; }
        /// <summary>The byte in the file, or null.</summary>
        public ulong? Offset { get; }
        /// <summary>The chunk that is damaged, or null.</summary>
        public ulong? Chunk => Kind == Place.Chunk ? Number : null;

        internal CddException(Status status, string text) : base(text) { Status = status; }

        internal unsafe CddException(int status, NativeError* error) : base(TextOf(status, error))
        {
            Status = (Status)status;
            if (error == null) return;
            OsErrno = error->OsErrno;
            Kind = (Place)error->Kind;
            Number = Known(error->Number);
            Field = Known(error->Field);
            Offset = Known(error->Offset);
        }

        private static ulong? Known(ulong value) => value == ulong.MaxValue ? (ulong?)null : value;

        private static unsafe string TextOf(int status, NativeError* error)
        {
            if (error == null) return ((Status)status).ToString();
            int length = 0;
            while (length < 480 && error->Text[length] != 0) ++length;
            return length == 0 ? ((Status)status).ToString() : Text(error->Text, length);
        }

        internal static unsafe string Text(byte* text, int length)
        {
            var bytes = new byte[length];
            for (int i = 0; i < length; ++i) bytes[i] = text[i];
            return Encoding.UTF8.GetString(bytes);
        }
    }

    internal static class Check
    {
        public static unsafe NativeError NewError()
        {
            var error = new NativeError();
            error.StructSize = (uint)sizeof(NativeError);
            return error;
        }

        /// <summary>Throws where a call did not succeed.</summary>
        public static unsafe void Done(int status, NativeError* error)
        {
            if (status != (int)Status.Ok) throw new CddException(status, error);
        }

        public static byte[] Path(string path)
        {
            if (path == null) throw new ArgumentNullException(nameof(path));
            if (path.IndexOf('\0') >= 0) throw new ArgumentException("a path has no zero in it", nameof(path));
            return Encoding.UTF8.GetBytes(path + "\0");
        }
    }
}
