// cdd.h as C# calls it: blittable structs, no marshalling, no copies. Nothing here checks anything.
//
// The library is libcdd.so, libcdd.dylib or cdd.dll, found as the runtime finds native libraries.
using System;
using System.Runtime.InteropServices;

namespace Cdd
{
    [StructLayout(LayoutKind.Sequential)]
    internal unsafe struct NativeError
    {
        public uint StructSize;
        public int Status;
        public int OsErrno;
        public uint Kind;
        public ulong Number, Field, Offset;
        public fixed byte Text[480];
    }

    [StructLayout(LayoutKind.Sequential)]
    internal unsafe struct NativeLayout
    {
        public uint Dtype, Ndim;
        public fixed uint Dims[7];
        public uint RowBytes;
    }

    [StructLayout(LayoutKind.Sequential)]
    internal struct NativeCells
    {
        public uint LevelBegin, LevelEnd, FeatureBegin, FeatureEnd;
    }

    [StructLayout(LayoutKind.Sequential)]
    internal struct NativeReaderOptions
    {
        public uint StructSize, Check, NoMmap, Reserved;
        public ulong MaxChunkBytes;
    }

    [StructLayout(LayoutKind.Sequential)]
    internal unsafe struct NativeInfo
    {
        public uint StructSize, Replaced;
        public NativeLayout Layout;
        public ulong Rows, Chunks, StoredBytes, UserMetaBytes;
        public fixed byte Id[16];
    }

    [StructLayout(LayoutKind.Sequential)]
    internal unsafe struct NativeWriterOptions
    {
        public uint StructSize, Mode;
        public NativeLayout* Layout;
        public byte* Codec;
        public byte* UserMeta;
        public UIntPtr UserMetaBytes;
        public uint Profile, Durability, ZstdLevel, ChunkBytes, ChunkRows, Float16;
        public double SizeScale;
        public uint Normalise, VisibleAtClose;
    }

    [StructLayout(LayoutKind.Sequential)]
    internal struct NativeQueueOptions
    {
        public uint StructSize, MaxJobs;
        public IntPtr Wake, User;
    }

    [StructLayout(LayoutKind.Sequential)]
    internal unsafe struct NativeCompletion
    {
        public IntPtr User;
        public ulong Ticket;
        public int Status;
        public uint Reserved;
        public NativeError* Error;
    }

    internal static unsafe class Native
    {
        private const string Library = "cdd";

        [DllImport(Library)]
        public static extern uint cdd_abi();

        [DllImport(Library)]
        public static extern byte* cdd_version();

        [DllImport(Library)]
        public static extern int cdd_reader_open(byte* path, NativeReaderOptions* options, out IntPtr reader,
                                                 NativeError* error);

        [DllImport(Library)]
        public static extern void cdd_reader_close(IntPtr reader);

        [DllImport(Library)]
        public static extern ulong cdd_reader_rows(ReaderHandle reader);

        [DllImport(Library)]
        public static extern int cdd_reader_info(ReaderHandle reader, NativeInfo* info, NativeError* error);

        [DllImport(Library)]
        public static extern int cdd_reader_user_meta(ReaderHandle reader, byte* bytes, UIntPtr size,
                                                      NativeError* error);

        [DllImport(Library)]
        public static extern int cdd_read(ReaderHandle reader, ulong first, ulong count, NativeCells* cells,
                                          void* rows, UIntPtr bytes, NativeError* error);

        [DllImport(Library)]
        public static extern int cdd_read_windows(ReaderHandle reader, ulong* starts, UIntPtr windows, ulong rows,
                                                  NativeCells* cells, void* to, UIntPtr bytes, NativeError* error);

        [DllImport(Library)]
        public static extern int cdd_refresh(ReaderHandle reader, out ulong rows, NativeError* error);

        [DllImport(Library)]
        public static extern int cdd_follow(ReaderHandle reader, ulong seen, long timeoutMs, out ulong rows,
                                            NativeError* error);

        [DllImport(Library)]
        public static extern int cdd_writer_open(byte* path, NativeWriterOptions* options, out IntPtr writer,
                                                 NativeError* error);

        [DllImport(Library)]
        public static extern int cdd_append(WriterHandle writer, NativeLayout* layout, void* rows, ulong count,
                                            NativeError* error);

        [DllImport(Library)]
        public static extern int cdd_flush(WriterHandle writer, NativeError* error);

        [DllImport(Library)]
        public static extern ulong cdd_writer_rows(WriterHandle writer);

        [DllImport(Library)]
        public static extern int cdd_writer_close(IntPtr writer, NativeError* error);

        [DllImport(Library)]
        public static extern int cdd_queue_open(NativeQueueOptions* options, out IntPtr queue, NativeError* error);

        [DllImport(Library)]
        public static extern void cdd_queue_close(IntPtr queue);

        [DllImport(Library)]
        public static extern int cdd_queue_take(IntPtr queue, NativeCompletion* completions, UIntPtr atMost,
                                                long timeoutMs, out UIntPtr taken, NativeError* error);

        [DllImport(Library)]
        public static extern int cdd_queue_cancel(IntPtr queue, ulong ticket);

        [DllImport(Library)]
        public static extern int cdd_queue_read(IntPtr queue, ReaderHandle reader, ulong first, ulong count,
                                                NativeCells* cells, void* rows, UIntPtr bytes, IntPtr user,
                                                out ulong ticket, NativeError* error);

        [DllImport(Library)]
        public static extern int cdd_queue_follow(IntPtr queue, ReaderHandle reader, ulong seen, long timeoutMs,
                                                  IntPtr user, out ulong ticket, NativeError* error);

        [DllImport(Library)]
        public static extern int cdd_queue_append(IntPtr queue, WriterHandle writer, NativeLayout* layout, void* rows,
                                                  ulong count, IntPtr user, out ulong ticket, NativeError* error);

        [DllImport(Library)]
        public static extern int cdd_queue_flush(IntPtr queue, WriterHandle writer, IntPtr user, out ulong ticket,
                                                 NativeError* error);
    }
}
