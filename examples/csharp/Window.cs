// Reads some rows of a store of float32 and prints what they are: Window.exe FILE FIRST COUNT
//
//   mcs -unsafe -target:library -out:Cdd.dll bindings/csharp/*.cs
//   mcs -r:Cdd.dll examples/csharp/Window.cs && LD_LIBRARY_PATH=<where libcdd.so is> mono Window.exe btc.cdd 1000 64
using System;
using System.Linq;
using System.Threading.Tasks;
using Cdd;

internal static class Window
{
    private static async Task<int> Show(string path, long first, long count)
    {
        using (Reader book = Reader.Open(path))
        {
            var rows = new float[count * book.Layout.RowItems];
            await book.ReadAsync(first, count, rows);  // book.Read(first, count, rows) waits
            Console.WriteLine("{0} rows of {1}: from {2} to {3}", count, string.Join(", ", book.Layout.Shape),
                              rows.Min(), rows.Max());
            return 0;
        }
    }

    private static int Main(string[] arguments)
    {
        try
        {
            return Show(arguments[0], long.Parse(arguments[1]), long.Parse(arguments[2])).GetAwaiter().GetResult();
        }
        catch (CddException error)
        {
            Console.Error.WriteLine("{0}: {1}", error.Status, error.Message);
            return 1;
        }
    }
}
