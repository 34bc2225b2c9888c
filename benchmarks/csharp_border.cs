// What Reader.Read costs above the C call that it makes, and an empty call: csharp_border.exe FILE. Wall time, in
// turns, the least of many batches, in nanoseconds a call.
using System;
using System.Diagnostics;
using System.Runtime.InteropServices;

namespace Cdd
{
    internal static class Border
    {
        private static double Least(double before, Action<int> call)
        {
            const int calls = 2000;
            long start = Stopwatch.GetTimestamp();
            for (int i = 0; i < calls; ++i) call(i);
            double took = (Stopwatch.GetTimestamp() - start) * 1e9 / Stopwatch.Frequency / calls;
            return Math.Min(before, took);
        }

        private static unsafe int Main(string[] arguments)
        {
            using (Reader reader = Reader.Open(arguments[0]))
            {
                NativeError error = Check.NewError();
                IntPtr made;
                fixed (byte* text = Check.Path(arguments[0]))
                    Check.Done(Native.cdd_reader_open(text, null, out made, &error), &error);
                var handle = new ReaderHandle(made);
                foreach (int rows in new[] { 1, 64 })
                {
                    var to = new float[rows * reader.Layout.RowItems];
                    long range = reader.Rows - rows;
                    double empty = 1e18, native = 1e18, managed = 1e18, nothing = 1e18;
                    GCHandle pinned = GCHandle.Alloc(to, GCHandleType.Pinned);
                    IntPtr place = pinned.AddrOfPinnedObject();
                    for (int batch = 0; batch < 100; ++batch)
                    {
                        nothing = Least(nothing, i => { });
                        empty = Least(empty, i => Native.cdd_abi());
                        native = Least(native, i =>
                        {
                            NativeError bad = Check.NewError();
                            Native.cdd_read(handle, (ulong)((i * 7919L + 13) % range), (ulong)rows, null,
                                            (void*)place, (UIntPtr)(ulong)(to.Length * 4), &bad);
                        });
                        managed = Least(managed, i => reader.Read((i * 7919L + 13) % range, rows, to));
                    }
                    pinned.Free();
                    Console.WriteLine("{0} rows: empty P/Invoke {1:F0} ns, cdd_read {2:F0} ns, Reader.Read {3:F0} ns, {4:+0;-0} ns",
                                      rows, empty - nothing, native - nothing, managed - nothing, managed - native);
                }
            }
            return 0;
        }
    }
}
